//! Text as it lies on the disk: encoding, byte-order mark and line ends are found on reading and
//! put back on writing, so that an edit changes what it names and nothing else.

use std::borrow::Cow;

/// How a file's text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8 {
        mark: bool,
    },
    Utf16 {
        little: bool,
    },
    /// Single bytes (windows-1252), which every byte sequence is.
    Western,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 { .. } => "UTF-8",
            Self::Utf16 { little: true } => "UTF-16LE",
            Self::Utf16 { little: false } => "UTF-16BE",
            Self::Western => "windows-1252",
        }
    }
}

/// A file's text with what is needed to write it back the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// With line feeds alone, when the file has carriage returns throughout.
    pub text: String,
    pub encoding: Encoding,
    /// Every line ends with CR LF.
    pub crlf: bool,
}

impl Default for Text {
    /// How a new file is written.
    fn default() -> Self {
        Self {
            text: String::new(),
            encoding: Encoding::Utf8 { mark: false },
            crlf: false,
        }
    }
}

/// Reads bytes as text. None when they are not text (a NUL that no encoding explains).
pub fn decode(bytes: &[u8]) -> Option<Text> {
    let (text, encoding) = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => (
            String::from_utf8(rest.to_vec()).ok()?,
            Encoding::Utf8 { mark: true },
        ),
        [0xff, 0xfe, rest @ ..] => (wide(rest, true)?, Encoding::Utf16 { little: true }),
        [0xfe, 0xff, rest @ ..] => (wide(rest, false)?, Encoding::Utf16 { little: false }),
        _ if bytes.contains(&0) => return None,
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), Encoding::Utf8 { mark: false }),
            Err(_) => (
                encoding_rs::WINDOWS_1252
                    .decode_without_bom_handling(bytes)
                    .0
                    .into_owned(),
                Encoding::Western,
            ),
        },
    };
    let ends = text.matches('\n').count();
    let crlf = ends > 0 && text.matches("\r\n").count() == ends;
    Some(Text {
        text: if crlf {
            text.replace("\r\n", "\n")
        } else {
            text
        },
        encoding,
        crlf,
    })
}

impl Text {
    /// The bytes of `text` in this file's encoding and line ends; none when a character has no
    /// place in it.
    pub fn encode(&self, text: &str) -> Option<Vec<u8>> {
        let text: Cow<'_, str> = if self.crlf {
            text.replace("\r\n", "\n").replace('\n', "\r\n").into()
        } else {
            text.into()
        };
        match self.encoding {
            Encoding::Utf8 { mark } => {
                let mut bytes = if mark {
                    vec![0xef, 0xbb, 0xbf]
                } else {
                    Vec::new()
                };
                bytes.extend_from_slice(text.as_bytes());
                Some(bytes)
            }
            Encoding::Utf16 { little } => {
                let mut bytes = if little {
                    vec![0xff, 0xfe]
                } else {
                    vec![0xfe, 0xff]
                };
                for unit in text.encode_utf16() {
                    bytes.extend(if little {
                        unit.to_le_bytes()
                    } else {
                        unit.to_be_bytes()
                    });
                }
                Some(bytes)
            }
            Encoding::Western => {
                let (bytes, _, lost) = encoding_rs::WINDOWS_1252.encode(&text);
                (!lost).then(|| bytes.into_owned())
            }
        }
    }
}

fn wide(bytes: &[u8], little: bool) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let units = pairs.iter().map(|pair| {
        if little {
            u16::from_le_bytes(*pair)
        } else {
            u16::from_be_bytes(*pair)
        }
    });
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_written_back_byte_for_byte() {
        let files: &[&[u8]] = &[
            b"",
            b"plain\nlines\n",
            b"no end",
            b"dos\r\nlines\r\n",
            b"mixed\r\nlines\n",
            b"\xef\xbb\xbfmark\r\nand dos\r\n",
            b"\xff\xfeh\0i\0\r\0\n\0",
            b"\xfe\xff\0h\0i",
            b"caf\xe9 \x80\n",
            "grüße 🙂\n".as_bytes(),
        ];
        for bytes in files {
            let read = decode(bytes).unwrap();
            assert_eq!(read.encode(&read.text).unwrap(), *bytes, "{read:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart() {
        assert_eq!(decode(b"\x7fELF\0\0"), None);
        assert_eq!(decode(b"\xff\xfeodd"), None);
        assert_eq!(decode(b"\xef\xbb\xbf\xff"), None);
    }

    #[test]
    fn a_character_without_a_place_is_not_lost_silently() {
        let read = decode(b"caf\xe9").unwrap();
        assert_eq!(read.encode("caf\u{e9} \u{1f642}"), None);
    }
}
