//! Model servers a person added, and what was used.

use rusqlite::{OptionalExtension as _, Row, params};

use super::HubStore;
use crate::store::db::{Cached, Durability, StoreError};
use crate::store::item::Tokens;

/// One model at one server. The key never leaves the hub.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// As chats name it.
    pub id: String,
    pub account: String,
    pub name: String,
    /// The base that ends before `/chat/completions`.
    pub url: String,
    pub key: Option<String>,
    /// As its server names it.
    pub model: String,
    pub is_default: bool,
    pub context: Option<u64>,
    pub vision: Option<bool>,
    pub tools: Option<bool>,
    pub efforts: Vec<String>,
    pub tested: Option<i64>,
    /// What the last test said.
    pub said: Option<String>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("id", &self.id)
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

const COLUMNS: &str = "id, account, name, url, key, model, is_default, context, vision, tools,
    efforts, tested, said";

impl Model {
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        let efforts: String = row.get(10)?;
        Ok(Self {
            id: row.get(0)?,
            account: row.get(1)?,
            name: row.get(2)?,
            url: row.get(3)?,
            key: row.get(4)?,
            model: row.get(5)?,
            is_default: row.get(6)?,
            context: row.get(7)?,
            vision: row.get(8)?,
            tools: row.get(9)?,
            efforts: serde_json::from_str(&efforts).unwrap_or_default(),
            tested: row.get(11)?,
            said: row.get(12)?,
        })
    }
}

/// What one model was used for in one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub requests: u64,
    pub tokens: Tokens,
}

impl HubStore {
    pub async fn models(&self, account: String) -> Result<Vec<Model>, StoreError> {
        self.db
            .call(move |c| {
                c.prepare_cached(&format!(
                    "select {COLUMNS} from models where account = ?1 order by name, id"
                ))?
                .query_map([account], Model::read)?
                .collect()
            })
            .await
    }

    pub async fn model(&self, account: String, id: String) -> Result<Option<Model>, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    &format!("select {COLUMNS} from models where account = ?1 and id = ?2"),
                    [account, id],
                    Model::read,
                )
                .optional()
            })
            .await
    }

    /// Adds a model, or changes the one of that id; a key that is not given is kept. The first one
    /// becomes the default.
    pub async fn put_model(&self, model: Model) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "insert into models (id, account, name, url, key, model, is_default, context,
                       vision, tools, efforts, tested, said)
                     values (?1, ?2, ?3, ?4, ?5, ?6,
                       not exists (select 1 from models where account = ?2 and is_default = 1),
                       ?7, ?8, ?9, ?10, ?11, ?12)
                     on conflict (account, id) do update set name = excluded.name, url = excluded.url,
                       key = coalesce(excluded.key, key), model = excluded.model,
                       context = excluded.context, vision = excluded.vision,
                       tools = excluded.tools, efforts = excluded.efforts,
                       tested = excluded.tested, said = excluded.said",
                    params![
                        model.id,
                        model.account,
                        model.name,
                        model.url,
                        model.key,
                        model.model,
                        model.context,
                        model.vision,
                        model.tools,
                        serde_json::to_string(&model.efforts).unwrap_or_default(),
                        model.tested,
                        model.said
                    ],
                )?;
                Ok(())
            })
            .await
    }

    pub async fn delete_model(&self, account: String, id: String) -> Result<bool, StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                let gone = t.execute_cached(
                    "delete from models where account = ?1 and id = ?2",
                    [&account, &id],
                )? == 1;
                t.execute_cached(
                    "update models set is_default = 1 where account = ?1
                     and id = (select id from models where account = ?1 order by name limit 1)
                     and not exists (select 1 from models where account = ?1 and is_default = 1)",
                    [&account],
                )?;
                Ok(gone)
            })
            .await
    }

    /// Makes one the default; an id that is none of the account's leaves none (the practice model
    /// is the default then).
    pub async fn default_model(&self, account: String, id: String) -> Result<(), StoreError> {
        self.db
            .write(Durability::Disk, move |t| {
                t.execute_cached(
                    "update models set is_default = (id = ?2) where account = ?1",
                    [account, id],
                )?;
                Ok(())
            })
            .await
    }

    /// Counts a request in its month (`2026-11`).
    pub async fn count_usage(
        &self,
        month: String,
        account: String,
        model: String,
        tokens: Tokens,
    ) -> Result<(), StoreError> {
        self.db
            .write(Durability::Process, move |t| {
                t.execute_cached(
                    "insert into usage (month, account, model, requests, input, cached, output)
                     values (?1, ?2, ?3, 1, ?4, ?5, ?6)
                     on conflict do update set requests = requests + 1,
                       input = input + excluded.input, cached = cached + excluded.cached,
                       output = output + excluded.output",
                    params![
                        month,
                        account,
                        model,
                        tokens.input,
                        tokens.cached_input,
                        tokens.output
                    ],
                )?;
                Ok(())
            })
            .await
    }

    /// What an account used in a month.
    pub async fn usage(&self, month: String, account: String) -> Result<Usage, StoreError> {
        self.db
            .call(move |c| {
                c.query_row_cached(
                    "select coalesce(sum(requests), 0), coalesce(sum(input), 0),
                       coalesce(sum(cached), 0), coalesce(sum(output), 0)
                     from usage where month = ?1 and account = ?2",
                    [month, account],
                    |r| {
                        Ok(Usage {
                            requests: r.get(0)?,
                            tokens: Tokens {
                                input: r.get(1)?,
                                cached_input: r.get(2)?,
                                output: r.get(3)?,
                            },
                        })
                    },
                )
            })
            .await
    }
}
