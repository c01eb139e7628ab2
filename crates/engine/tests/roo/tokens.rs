//! The padded count: what a message weighs in the preset's own meter.

use crate::roo::facts::{Piece, WEIGHED};
use komado_core::Meter;
use komado_core::message::{Call, CallKind, ImageSource, Message, MessagePart, Opaque, Role};
use komado_core::raw::RawJson;

fn part(piece: &Piece) -> MessagePart {
    let picture = |url| MessagePart::Image { source: ImageSource::Url { url }, detail: None };
    match piece {
        Piece::Words(text) => MessagePart::text(*text),
        Piece::Picture(length) => picture(format!("data:image/png;base64,{}", "X".repeat(*length))),
        Piece::PictureElsewhere => picture("https://example.com/cat.png".into()),
        Piece::Call(name, arguments) => MessagePart::Call(Call {
            id: "t1".into(),
            name: (*name).into(),
            arguments: (*arguments).into(),
            kind: CallKind::Function,
            extra: None,
        }),
        Piece::Thought(text) => MessagePart::Reasoning { text: (*text).into(), signature: None },
        Piece::Other(json) => {
            MessagePart::Opaque(Opaque { dialect: "anthropic".into(), json: RawJson::parse(*json).unwrap() })
        }
    }
}

#[test]
fn a_message_weighs_what_the_original_says() {
    for weighed in WEIGHED {
        let message = Message::of(Role::Assistant, weighed.pieces.iter().map(part).collect());
        let tokens = u64::from(Meter::O200kTimes15.message(&message));
        assert_eq!(tokens, weighed.tokens.1, "{}", weighed.id);
        // Padded by half, once, rounded up.
        assert_eq!((weighed.tokens.0 * 3).div_ceil(2), weighed.tokens.1, "{}", weighed.id);
    }
}
