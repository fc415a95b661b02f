//! Accounts beyond the first: adding and listing them from the command line.

use rusqlite::params;

use super::HubStore;
use super::accounts::Account;
use crate::store::db::{Durability, StoreError};

impl HubStore {
    /// All accounts, the first one first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.db
            .call(|c| {
                c.prepare("select id, name, password from accounts order by created, id")?
                    .query_map([], |r| {
                        Ok(Account {
                            id: r.get(0)?,
                            name: r.get(1)?,
                            password: r.get(2)?,
                        })
                    })?
                    .collect()
            })
            .await
    }

    /// Adds an account with the argon2 string of its password. False when the name is taken.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn add_account(&self, name: String, password: String) -> Result<bool, StoreError> {
        let id = crate::ids::random_hex(8);
        self.db
            .write(Durability::Disk, move |t| {
                let added = t.execute(
                    "insert into accounts (id, name, password, created) values (?1, ?2, ?3, ?4)
                     on conflict (name) do nothing",
                    params![id, name, password, crate::clock::now_ms()],
                )?;
                Ok(added == 1)
            })
            .await
    }
}
