//! The lines of spawned threads, byte for byte, and what is said about broken ones.

use super::*;
use crate::notation;

/// Every field of every entry that passes between threads, as it stands in a file.
const LINES: [(&str, &str); 9] = [
    (
        r#"share stelis_1 window=100000 lends of root@12 0.8 keep 1..3,7 "[親]" ~1200 prompt="要約して" anchor=500 held=host:1"#,
        r#"{"seq":1,"op":"share","thread":"stelis_1","window":100000,"slices":[{"thread":"root","at":12,"ratio":0.8,"keep":[[1,3],[7,7]],"head":"[親]","tokens":1200}],"lends":true,"chronicle_prompt":"要約して","anchor_tokens":500,"held_by":"host:1","timestamp":"t","tokens":1200}"#,
    ),
    (
        r#"share stelis_1_1 window=9 of root@12 0.8 "a" of stelis_1@9 0.333333 keep 2..9 "b" ~9"#,
        r#"{"seq":1,"op":"share","thread":"stelis_1_1","window":9,"slices":[{"thread":"root","at":12,"ratio":0.8,"keep":[],"head":"a","tokens":0},{"thread":"stelis_1","at":9,"ratio":0.333333,"keep":[[2,9]],"head":"b","tokens":9}],"timestamp":"t","tokens":9}"#,
    ),
    (
        r#"share t window=18446744073709551615"#,
        r#"{"seq":1,"op":"share","thread":"t","window":18446744073709551615,"slices":[],"timestamp":"t","tokens":0}"#,
    ),
    (
        r#"chronicle 1..8 partial by=digest used=100+20+3w+4r "書いた" ~6"#,
        r#"{"seq":1,"op":"chronicle","text":"書いた","covers":[1,8],"partial":true,"model":"digest","usage":{"input_tokens":100,"output_tokens":20,"cache_creation_tokens":3,"cache_read_tokens":4},"timestamp":"t","tokens":6}"#,
    ),
    (
        r#"chronicle 4 "x""#,
        r#"{"seq":1,"op":"chronicle","text":"x","covers":[4,4],"timestamp":"t","tokens":0}"#,
    ),
    (
        r#"tell stelis_2 "the parser\nis done" ~5"#,
        r#"{"seq":1,"op":"tell","to":"stelis_2","text":"the parser\nis done","timestamp":"t","tokens":5}"#,
    ),
    ("heard stelis_1@10", r#"{"seq":1,"op":"heard","from":"stelis_1","upto":10,"timestamp":"t","tokens":0}"#),
    (
        r#"anchor stelis_1 "Work" "in progress" brief="began" ~4"#,
        r#"{"seq":1,"op":"anchor","thread":"stelis_1","label":"Work","text":"in progress","brief":"began","timestamp":"t","tokens":4}"#,
    ),
    (
        r#"anchor stelis_1 aborted first=3 "broken off""#,
        r#"{"seq":1,"op":"anchor","thread":"stelis_1","ending":"aborted","first":3,"text":"broken off","timestamp":"t","tokens":0}"#,
    ),
];

#[test]
fn every_field_has_its_place_and_reads_back() {
    for (said, line) in LINES {
        let record = decode(line).unwrap();
        assert_eq!((record.seq, record.timestamp.as_str()), (1, "t"), "{line}");
        assert_eq!(notation::entry(&record), format!("1 {said}"));
        assert_eq!(String::from_utf8(encode(&record)).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn fields_of_a_later_version_and_any_order_are_passed_over() {
    for (_, line) in LINES {
        let record = decode(line).unwrap();
        let more = line.replacen('{', r#"{"later":{"a":[1]},"redacted":[{"at":"t"}],"#, 1);
        let more = more.replace(r#"{"thread":"root""#, r#"{"later":null,"thread":"root""#);
        assert_eq!(decode(&more), Ok(record.clone()), "{more}");
        let object = RawObject::parse(line).unwrap();
        let turned: Vec<String> =
            object.0.iter().rev().map(|(key, value)| format!("\"{key}\":{}", value.get())).collect();
        assert_eq!(decode(&format!("{{{}}}", turned.join(","))), Ok(record));
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_the_field() {
    let share = LINES[1].1;
    let chronicle = LINES[3].1;
    for (line, old, new, says) in [
        (
            share,
            r#""ratio":0.333333"#,
            r#""ratio":1.5"#,
            "field `slices[1].ratio`: a thread cannot have 1.5 of its parent's window; give it between 0.01 and 0.99",
        ),
        (share, r#""ratio":0.8"#, r#""ratio":"much""#, "field `slices[0].ratio`: invalid type: string"),
        (share, r#""ratio":0.8,"#, "", "field `slices[0].ratio`: it is missing"),
        (
            share,
            r#""thread":"stelis_1""#,
            r#""thread":"../x""#,
            "field `slices[1].thread`: not a valid thread id: \"../x\": it must begin with a letter or digit",
        ),
        (
            share,
            r#""thread":"stelis_1_1""#,
            r#""thread":"a b""#,
            "field `thread`: not a valid thread id: \"a b\": use letters",
        ),
        (share, r#""keep":[[2,9]]"#, r#""keep":[[2]]"#, "field `slices[1].keep`: invalid length 1"),
        (share, r#""at":9"#, r#""at":-9"#, "field `slices[1].at`: invalid value: integer `-9`"),
        (share, r#""head":"a""#, r#""head":5"#, "field `slices[0].head`: invalid type: integer `5`"),
        (share, r#""tokens":0}"#, r#""tokens":null}"#, "field `slices[0].tokens`: it is missing"),
        (share, r#""slices":[{"#, r#""slices":[7,{"#, "field `slices[0]`: invalid type: integer `7`"),
        (share, r#""window":9,"#, "", "field `window` is missing"),
        (share, r#""slices""#, r#""slice""#, "field `slices` is missing"),
        (LINES[0].1, r#""lends":true"#, r#""lends":"yes""#, "field `lends`: invalid type: string"),
        (chronicle, r#""covers":[1,8],"#, "", "field `covers` is missing"),
        (chronicle, r#""covers":[1,8]"#, r#""covers":[1,8,9]"#, "field `covers`: trailing characters"),
        (chronicle, r#""text":"書いた","#, "", "field `text` is missing"),
        (chronicle, r#""partial":true"#, r#""partial":1"#, "field `partial`: invalid type: integer `1`"),
        (chronicle, r#""input_tokens":100"#, r#""input_tokens":-1"#, "field `usage`: invalid value"),
        (LINES[5].1, r#""to":"stelis_2""#, r#""to":"宛/先""#, "field `to`: not a valid thread id: \"宛/先\""),
        (LINES[6].1, r#""upto":10"#, r#""upto":"ten""#, "field `upto`: invalid type: string"),
        (LINES[6].1, r#""from":"stelis_1","#, "", "field `from` is missing"),
        (LINES[7].1, r#""brief":"began""#, r#""brief":[]"#, "field `brief`: invalid type: sequence"),
        (
            LINES[7].1,
            r#""thread":"stelis_1""#,
            r#""thread":"""#,
            "field `thread`: not a valid thread id: \"\": it is empty",
        ),
    ] {
        assert!(line.contains(old), "{old}");
        let why = decode(&line.replace(old, new)).unwrap_err().to_string();
        assert!(why.contains(says), "{new}\n  {why}\n  {says}");
    }
}
