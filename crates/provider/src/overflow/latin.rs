//! German, French, Spanish, Portuguese and Italian words of size, put into the one language the grammar reads.
//!
//! Whole words only, and only such as English does not have; the longest phrase at a place wins.

use super::tongue::{Phrases, each, longest};

/// What is said, and the phrases that say it, in small letters.
const PHRASES: &Phrases = &[
    // things of size
    ("input", &["eingabe", "eingaben", "entrée", "entrées", "l'entrée", "entrada", "l'input"]),
    ("input tokens", &["eingabetoken", "eingabetokens"]),
    ("input length", &["eingabelänge"]),
    ("request", &["anfrage", "requête", "demande", "solicitud", "solicitação", "richiesta"]),
    ("requests", &["anfragen", "requêtes"]),
    ("message", &["nachricht", "mensaje", "mensagem", "messaggio"]),
    ("messages", &["nachrichten", "mensajes", "mensagens", "messaggi"]),
    ("conversation", &["unterhaltung", "gespräch", "konversation", "conversación", "conversa"]),
    ("conversation", &["conversazione"]),
    ("context", &["kontext", "contexte", "contexto", "contesto"]),
    ("context window", &["kontextfenster", "kontextfensters", "fenêtre de contexte", "fenêtre contextuelle"]),
    ("context window", &["ventana de contexto", "janela de contexto", "finestra di contesto"]),
    ("context length", &["kontextlänge"]),
    ("context size", &["kontextgröße"]),
    ("context limit", &["kontextlimit"]),
    ("token limit", &["tokenlimit"]),
    ("input limit", &["eingabelimit"]),
    ("token count", &["tokenanzahl"]),
    ("length", &["länge", "longueur", "longitud", "lunghezza"]),
    ("size", &["größe", "taille", "tamanho", "tamaño"]),
    ("characters", &["zeichen", "caractères", "caracteres", "caratteri"]),
    ("output", &["ausgabe", "antwort", "sortie", "réponse", "salida", "saída", "respuesta", "resposta"]),
    ("output", &["risposta"]),
    ("image", &["bild", "imagen", "imagem", "immagine"]),
    ("images", &["bilder"]),
    ("file", &["datei", "fichier", "archivo", "arquivo"]),
    ("files", &["dateien", "fichiers"]),
    ("prompt", &["l'invite", "votre invite"]),
    ("history", &["historique"]),
    ("token", &["jeton"]),
    ("tokens", &["jetons"]),
    ("bytes", &["octets"]),
    ("mb", &["mo"]),
    // limits
    ("maximum", &["maximal", "maximale", "maximalen", "maximales", "máximo", "máxima", "massimo", "massima"]),
    ("at most", &["höchstens", "au plus"]),
    ("allowed", &["erlaubt", "erlaubte", "erlaubten", "zulässig", "zulässige", "zulässigen", "autorisé"]),
    ("allowed", &["autorisée", "autorisés", "permitido", "permitida", "consentito", "consentita"]),
    ("limit", &["grenze", "obergrenze", "limite", "plafond", "límite"]),
    // excess
    ("too long", &["zu lang", "trop long", "trop longs", "trop longue", "trop longues", "demasiado largo"]),
    ("too long", &["demasiado larga", "muito longo", "muito longa", "troppo lungo", "troppo lunga"]),
    ("too large", &["zu groß", "zu gross", "trop grand", "trop grande", "trop volumineux"]),
    ("too large", &["trop volumineuse", "demasiado grande", "muito grande", "troppo grande"]),
    ("too many", &["zu viele", "trop de", "demasiados", "troppi"]),
    ("longer than", &["länger als", "plus long que", "plus longue que"]),
    ("larger than", &["größer als", "plus grand que", "plus grande que"]),
    ("more than", &["mehr als"]),
    ("exceeds", &["überschreitet", "übersteigt", "dépasse", "excède", "supera", "excede", "ultrapassa"]),
    ("exceed", &["überschreiten", "übersteigen", "dépassent"]),
    ("exceeded", &["überschritten", "dépassé", "dépassée", "superato", "superada", "excedido", "excedida"]),
    ("does not fit", &["passt nicht", "passen nicht", "ne tient pas"]),
    ("shorten", &["kürzen", "verkürzen", "raccourcir", "raccourcissez"]),
    ("reached", &["erreicht", "atteint", "atteinte", "alcanzado", "raggiunto"]),
    ("greater than", &["supérieur à", "supérieure à"]),
    ("overflow", &["dépassement"]),
    ("reduce", &["réduire", "réduisez"]),
    // what was sent
    ("contains", &["enthält", "contient", "contiene", "contém"]),
    ("sent", &["envoyé", "envoyés", "gesendet"]),
    ("requested", &["demandé", "demandés", "angefordert"]),
    // joints
    ("but", &["aber", "jedoch", "mais", "pero", "ma il", "mas"]),
    ("of", &["du", "von", "des", "del", "do"]),
    // what is no overflow
    ("per minute", &["pro minute", "par minute", "por minuto", "al minuto"]),
    ("per hour", &["pro stunde", "par heure"]),
    ("per day", &["pro tag", "par jour"]),
    ("rate limit", &["ratenlimit", "débit"]),
    ("quota", &["kontingent", "cuota", "cota"]),
    ("credit", &["guthaben", "crédit", "crédits"]),
    ("timeout", &["zeitüberschreitung", "délai"]),
    ("expired", &["abgelaufen", "expiré", "expirée"]),
    ("policy", &["richtlinie", "richtlinien", "politique", "política"]),
    ("seconds", &["sekunden", "secondes", "segundos", "secondi"]),
];

/// Little words of these languages; without one of them, or a long word of the list above, nothing is turned.
const MARKS: &[&str] = &[
    "die", "der", "das", "ist", "sind", "zu", "von", "wurde", "bitte", "le", "la", "les", "est", "trop",
    "votre", "el", "es", "il", "è", "é", "o", "os", "um", "por", "maximale", "limite",
];

/// The text with the phrases above in plain words, if it is written in one of these languages.
pub(super) fn plain(text: &str) -> String {
    let small = text.to_lowercase().replace('’', "'");
    let own = |word: &str| word.len() >= 7 && each(PHRASES).any(|(phrase, _)| phrase == word);
    let foreign = small.split(|c: char| !c.is_alphanumeric()).any(|word| MARKS.contains(&word) || own(word));
    if !foreign {
        return text.to_owned();
    }
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let (mut out, mut turned) = (String::with_capacity(text.len()), false);
    let mut rest = small.as_str();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let starts = !(before.is_alphanumeric() || before == '_');
        if starts && let Some((phrase, word)) = longest(PHRASES, rest, ends) {
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
