//! What the command line of the hub's own computer asks of it besides what the page can do.

use super::models::{AddError, NewModel, Tested};
use super::{Hub, OneTimeLink, models};
use crate::store::db::StoreError;
use crate::store::hub::accounts::Account;

impl Hub {
    /// Tries a model that was added, with its own key, by its id or its name. None when there is
    /// none.
    ///
    /// # Errors
    /// The ways in which a test can fail.
    pub async fn try_model(&self, name: &str) -> Result<Option<Tested>, AddError> {
        let all = self
            .shared
            .store
            .models(self.shared.facts.owner.clone())
            .await?;
        let found = all
            .into_iter()
            .find(|model| model.id == name || model.name == name);
        let Some(model) = found else {
            return Ok(None);
        };
        let new = NewModel {
            name: Some(model.name),
            url: model.url,
            key: model.key,
            model: model.model,
            context: model.context,
            efforts: model.efforts,
        };
        Ok(Some(models::test(&self.shared.http, &new).await?))
    }

    /// Takes a model of the first account away, by its id or its name. False when there is none.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn remove_model(&self, name: &str) -> Result<bool, StoreError> {
        models::take_away(&self.shared, &self.shared.facts.owner, name).await
    }

    /// Another account of this instance and its first sign-in link; none when the name is taken.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn add_account(&self, name: &str) -> Result<Option<OneTimeLink>, StoreError> {
        match self.shared.store.add_account(name.to_owned()).await? {
            Some(account) => Ok(Some(self.link_for(account.id).await?)),
            None => Ok(None),
        }
    }

    /// The accounts, the first one first.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.shared.store.accounts().await
    }
}
