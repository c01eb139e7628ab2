//! German, French, Spanish, Portuguese and Italian words of size, put into the one language the grammar reads.
//!
//! Whole words only, and only such as English does not have; the longest phrase at a place wins.

/// Phrases in small letters and what they say.
const PHRASES: &[(&str, &str)] = &[
    // things of size
    ("eingabe", "input"),
    ("eingaben", "input"),
    ("eingabetoken", "input tokens"),
    ("eingabetokens", "input tokens"),
    ("eingabelänge", "input length"),
    ("anfrage", "request"),
    ("anfragen", "requests"),
    ("nachricht", "message"),
    ("nachrichten", "messages"),
    ("unterhaltung", "conversation"),
    ("gespräch", "conversation"),
    ("konversation", "conversation"),
    ("kontext", "context"),
    ("kontextfenster", "context window"),
    ("kontextfensters", "context window"),
    ("kontextlänge", "context length"),
    ("kontextgröße", "context size"),
    ("kontextlimit", "context limit"),
    ("tokenlimit", "token limit"),
    ("eingabelimit", "input limit"),
    ("tokenanzahl", "token count"),
    ("länge", "length"),
    ("größe", "size"),
    ("zeichen", "characters"),
    ("ausgabe", "output"),
    ("antwort", "output"),
    ("bild", "image"),
    ("bilder", "images"),
    ("datei", "file"),
    ("dateien", "files"),
    ("entrée", "input"),
    ("entrées", "input"),
    ("l'entrée", "input"),
    ("l'invite", "prompt"),
    ("votre invite", "prompt"),
    ("requête", "request"),
    ("requêtes", "requests"),
    ("demande", "request"),
    ("historique", "history"),
    ("contexte", "context"),
    ("fenêtre de contexte", "context window"),
    ("fenêtre contextuelle", "context window"),
    ("longueur", "length"),
    ("taille", "size"),
    ("jeton", "token"),
    ("jetons", "tokens"),
    ("caractères", "characters"),
    ("octets", "bytes"),
    ("mo", "mb"),
    ("sortie", "output"),
    ("réponse", "output"),
    ("fichier", "file"),
    ("fichiers", "files"),
    ("entrada", "input"),
    ("solicitud", "request"),
    ("solicitação", "request"),
    ("richiesta", "request"),
    ("mensaje", "message"),
    ("mensajes", "messages"),
    ("mensagem", "message"),
    ("mensagens", "messages"),
    ("messaggio", "message"),
    ("messaggi", "messages"),
    ("conversación", "conversation"),
    ("conversa", "conversation"),
    ("conversazione", "conversation"),
    ("l'input", "input"),
    ("contexto", "context"),
    ("contesto", "context"),
    ("ventana de contexto", "context window"),
    ("janela de contexto", "context window"),
    ("finestra di contesto", "context window"),
    ("longitud", "length"),
    ("lunghezza", "length"),
    ("tamanho", "size"),
    ("tamaño", "size"),
    ("caracteres", "characters"),
    ("caratteri", "characters"),
    ("salida", "output"),
    ("saída", "output"),
    ("respuesta", "output"),
    ("resposta", "output"),
    ("risposta", "output"),
    ("imagen", "image"),
    ("imagem", "image"),
    ("immagine", "image"),
    ("archivo", "file"),
    ("arquivo", "file"),
    // limits
    ("maximal", "maximum"),
    ("maximale", "maximum"),
    ("maximalen", "maximum"),
    ("höchstens", "at most"),
    ("erlaubt", "allowed"),
    ("erlaubte", "allowed"),
    ("erlaubten", "allowed"),
    ("zulässig", "allowed"),
    ("zulässige", "allowed"),
    ("zulässigen", "allowed"),
    ("grenze", "limit"),
    ("obergrenze", "limit"),
    ("maximales", "maximum"),
    ("au plus", "at most"),
    ("autorisé", "allowed"),
    ("autorisée", "allowed"),
    ("autorisés", "allowed"),
    ("limite", "limit"),
    ("plafond", "limit"),
    ("máximo", "maximum"),
    ("máxima", "maximum"),
    ("massimo", "maximum"),
    ("massima", "maximum"),
    ("permitido", "allowed"),
    ("permitida", "allowed"),
    ("consentito", "allowed"),
    ("consentita", "allowed"),
    ("límite", "limit"),
    // excess
    ("zu lang", "too long"),
    ("zu groß", "too large"),
    ("zu gross", "too large"),
    ("zu viele", "too many"),
    ("länger als", "longer than"),
    ("größer als", "larger than"),
    ("mehr als", "more than"),
    ("überschreitet", "exceeds"),
    ("überschreiten", "exceed"),
    ("überschritten", "exceeded"),
    ("übersteigt", "exceeds"),
    ("übersteigen", "exceed"),
    ("passt nicht", "does not fit"),
    ("passen nicht", "does not fit"),
    ("kürzen", "shorten"),
    ("erreicht", "reached"),
    ("atteint", "reached"),
    ("atteinte", "reached"),
    ("alcanzado", "reached"),
    ("raggiunto", "reached"),
    ("verkürzen", "shorten"),
    ("trop long", "too long"),
    ("trop longs", "too long"),
    ("trop longue", "too long"),
    ("trop longues", "too long"),
    ("trop grand", "too large"),
    ("trop grande", "too large"),
    ("trop volumineux", "too large"),
    ("trop volumineuse", "too large"),
    ("trop de", "too many"),
    ("plus long que", "longer than"),
    ("plus longue que", "longer than"),
    ("plus grand que", "larger than"),
    ("plus grande que", "larger than"),
    ("supérieur à", "greater than"),
    ("supérieure à", "greater than"),
    ("dépasse", "exceeds"),
    ("dépassent", "exceed"),
    ("dépassé", "exceeded"),
    ("dépassée", "exceeded"),
    ("dépassement", "overflow"),
    ("excède", "exceeds"),
    ("ne tient pas", "does not fit"),
    ("réduire", "reduce"),
    ("réduisez", "reduce"),
    ("raccourcir", "shorten"),
    ("raccourcissez", "shorten"),
    ("demasiado largo", "too long"),
    ("demasiado larga", "too long"),
    ("demasiado grande", "too large"),
    ("demasiados", "too many"),
    ("muito longo", "too long"),
    ("muito longa", "too long"),
    ("muito grande", "too large"),
    ("troppo lungo", "too long"),
    ("troppo lunga", "too long"),
    ("troppo grande", "too large"),
    ("troppi", "too many"),
    ("supera", "exceeds"),
    ("superato", "exceeded"),
    ("superada", "exceeded"),
    ("excede", "exceeds"),
    ("ultrapassa", "exceeds"),
    ("excedido", "exceeded"),
    ("excedida", "exceeded"),
    // what was sent
    ("enthält", "contains"),
    ("contient", "contains"),
    ("contiene", "contains"),
    ("contém", "contains"),
    ("envoyé", "sent"),
    ("envoyés", "sent"),
    ("demandé", "requested"),
    ("demandés", "requested"),
    ("gesendet", "sent"),
    ("angefordert", "requested"),
    // joints
    ("aber", "but"),
    ("jedoch", "but"),
    ("mais", "but"),
    ("pero", "but"),
    ("ma il", "but"),
    ("mas", "but"),
    ("du", "of"),
    ("von", "of"),
    ("des", "of"),
    ("del", "of"),
    ("do", "of"),
    // what is no overflow
    ("pro minute", "per minute"),
    ("pro stunde", "per hour"),
    ("pro tag", "per day"),
    ("ratenlimit", "rate limit"),
    ("kontingent", "quota"),
    ("guthaben", "credit"),
    ("zeitüberschreitung", "timeout"),
    ("abgelaufen", "expired"),
    ("richtlinie", "policy"),
    ("richtlinien", "policy"),
    ("sekunden", "seconds"),
    ("par minute", "per minute"),
    ("par heure", "per hour"),
    ("par jour", "per day"),
    ("débit", "rate limit"),
    ("crédit", "credit"),
    ("crédits", "credit"),
    ("délai", "timeout"),
    ("expiré", "expired"),
    ("expirée", "expired"),
    ("politique", "policy"),
    ("secondes", "seconds"),
    ("por minuto", "per minute"),
    ("al minuto", "per minute"),
    ("cuota", "quota"),
    ("cota", "quota"),
    ("política", "policy"),
    ("segundos", "seconds"),
    ("secondi", "seconds"),
];

/// Little words of these languages; without one of them, or a long word of the list above, nothing is turned.
const MARKS: &[&str] = &[
    "die", "der", "das", "ist", "sind", "zu", "von", "wurde", "bitte", "le", "la", "les", "est", "trop",
    "votre", "el", "es", "il", "è", "é", "o", "os", "um", "por", "maximale", "limite",
];

/// The text with the phrases above in plain words, if it is written in one of these languages.
pub(super) fn plain(text: &str) -> String {
    let small = text.to_lowercase().replace('’', "'");
    let own = |word: &str| word.len() >= 7 && PHRASES.iter().any(|(phrase, _)| *phrase == word);
    let foreign = small.split(|c: char| !c.is_alphanumeric()).any(|word| MARKS.contains(&word) || own(word));
    if !foreign {
        return text.to_owned();
    }
    let (mut out, mut turned) = (String::with_capacity(text.len()), false);
    let mut rest = small.as_str();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let starts = !(before.is_alphanumeric() || before == '_');
        if starts && let Some((phrase, word)) = longest(rest) {
            out.push_str(word);
            rest = &rest[phrase.len()..];
            (before, turned) = ('x', true);
            continue;
        }
        out.push(c);
        before = c;
        rest = &rest[c.len_utf8()..];
    }
    if turned { joined(&out) } else { text.to_owned() }
}

fn longest(rest: &str) -> Option<&'static (&'static str, &'static str)> {
    let ends = |phrase: &str| !rest[phrase.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    PHRASES
        .iter()
        .filter(|(phrase, _)| rest.starts_with(phrase) && ends(phrase))
        .max_by_key(|(phrase, _)| phrase.len())
}

/// `9 001` is one number where thousands are parted by spaces.
fn joined(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut out = String::with_capacity(text.len());
    for (i, word) in words.iter().enumerate() {
        let head: String = word.chars().take_while(char::is_ascii_digit).collect();
        let tail = word.chars().nth(3).is_none_or(|c| !c.is_alphanumeric());
        let thousands = i > 0 && head.len() == 3 && tail;
        let leads = |word: &str| {
            let word = word.trim_start_matches('(');
            digits(word) && word.len() <= 3
        };
        if i > 0 && !(thousands && leads(words[i - 1])) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn whole_words_are_turned_and_english_is_left_as_it_is() {
        assert_eq!(plain("Die Eingabe ist zu lang"), "die input ist too long");
        assert_eq!(plain("L’entrée est trop longue : 9 001 jetons"), "input est too long : 9001 tokens");
        assert_eq!(plain("Prompt is too long, do reduce it"), "Prompt is too long, do reduce it");
    }
}
