//! What is stored of a call's output: how much, and pieces of it.

use rusqlite::{OptionalExtension as _, params};

use super::HubStore;
use crate::store::db::StoreError;

/// What is known of a call's output without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// It is a command.
    pub command: bool,
    /// Its result is here.
    pub ended: bool,
    /// Bytes that it put out, as its result says.
    pub bytes: u64,
    /// Its whole is in a file of the computer.
    pub spilled: bool,
    /// Bytes of output that are stored here.
    pub output: u64,
    /// A replacement character is among them: what was written may have been no text.
    pub replaced: bool,
    /// Bytes of the result's text.
    pub result: u64,
}

impl Stored {
    /// Every byte is here, as it was written.
    pub fn whole(&self) -> bool {
        if self.command && (self.bytes > 0 || self.output > 0) {
            self.output == self.bytes && !self.replaced
        } else {
            !self.spilled
        }
    }

    /// What is read here is the output, and not the result's text.
    pub fn of_output(&self) -> bool {
        self.output > 0
    }

    /// Bytes that can be read here.
    pub fn size(&self) -> u64 {
        if self.of_output() {
            self.output
        } else {
            self.result
        }
    }
}

const TEXT: &str = "i.text || coalesce((select group_concat(text, '') from (select text from tails
    where chat = i.chat and seq = i.seq order by start)), '')";

impl HubStore {
    /// What is stored of a call's output; none: there is no such call.
    pub async fn stored_output(
        &self,
        chat: String,
        call: String,
    ) -> Result<Option<Stored>, StoreError> {
        self.db
            .call(move |c| {
                let mut stored: Option<Stored> = c
                    .query_row(
                        "select coalesce(json_extract(data, '$.block') = 'shell', 0) from items
                         where chat = ?1 and call = ?2 and kind = 'call'",
                        [&chat, &call],
                        |r| {
                            Ok(Stored {
                                command: r.get(0)?,
                                ..Stored::default()
                            })
                        },
                    )
                    .optional()?;
                let Some(stored) = stored.as_mut() else {
                    return Ok(None);
                };
                let result: Option<(u64, bool, u64)> = c
                    .query_row(
                        "select max(0, coalesce(cast(json_extract(data, '$.bytes') as integer), 0)),
                                json_extract(data, '$.spill') is not null,
                                length(cast(coalesce(json_extract(data, '$.text'), '') as blob))
                         from items where chat = ?1 and call = ?2 and kind = 'result'",
                        [&chat, &call],
                        |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)),
                    )
                    .optional()?;
                if let Some((bytes, spilled, text)) = result {
                    stored.ended = true;
                    stored.bytes = bytes;
                    stored.spilled = spilled;
                    stored.result = text;
                }
                (stored.output, stored.replaced) = c.query_row(
                    &format!(
                        "select coalesce(sum(at), 0), coalesce(max(instr({TEXT}, char(65533)) > 0), 0)
                         from items i where chat = ?1 and call = ?2 and kind = 'output'"
                    ),
                    [&chat, &call],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )?;
                Ok(Some(stored.clone()))
            })
            .await
    }

    /// At most `max` bytes of what is stored of a call from byte `from` on; fewer do not mean that
    /// there are no more, none does.
    pub async fn stored_piece(
        &self,
        chat: String,
        call: String,
        output: bool,
        from: u64,
        max: u64,
    ) -> Result<Vec<u8>, StoreError> {
        self.db
            .call(move |c| {
                if !output {
                    return Ok(c
                        .query_row(
                            "select substr(cast(json_extract(data, '$.text') as blob), ?3 + 1, ?4)
                             from items where chat = ?1 and call = ?2 and kind = 'result'",
                            params![chat, call, from, max],
                            |r| r.get::<_, Option<Vec<u8>>>(0),
                        )
                        .optional()?
                        .flatten()
                        .unwrap_or_default());
                }
                // One item at a time: an output may have many.
                let rows: Vec<(u64, u64)> = c
                    .prepare(
                        "select seq, at from items
                         where chat = ?1 and call = ?2 and kind = 'output' order by seq",
                    )?
                    .query_map([&chat, &call], |r| Ok((r.get(0)?, r.get(1)?)))?
                    .collect::<Result<_, _>>()?;
                let mut start = 0;
                for (seq, at) in rows {
                    if from < start + at {
                        return c.query_row(
                            &format!(
                                "select substr(cast({TEXT} as blob), ?3 + 1, ?4) from items i
                                 where chat = ?1 and seq = ?2"
                            ),
                            params![chat, seq, from - start, max],
                            |r| r.get(0),
                        );
                    }
                    start += at;
                }
                Ok(Vec::new())
            })
            .await
    }
}
