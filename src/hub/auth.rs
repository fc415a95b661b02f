//! Signing in: accounts, one-time links, and the browsers that are signed in.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Body, Path};
use super::error::{ApiError, ApiResult};
use super::events::{Audience, Event};
use super::front::Remote;
use super::gate::What;
use super::{Shared, passwords};
use crate::clock::now_ms;
use crate::ids::random_bytes;
use crate::store::hub::accounts::Browser;
use crate::text::escape;

const COOKIE: &str = "lembas_session";
/// How long a browser stays signed in when nobody ends it: half a year.
const COOKIE_SECONDS: u32 = 15_552_000;
/// A visit is noted at most so often.
const SEEN_EVERY_MS: i64 = 60_000;
/// Letters of one-time codes: Crockford's, which leave out what is misread.
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A request of someone who is signed in. Taking it from a request is the check.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) account: String,
    pub(crate) browser: String,
    /// The account's name, for "answered by".
    pub(crate) name: String,
    /// What the browser is, in words.
    pub(crate) agent: String,
}

impl FromRequestParts<Arc<Shared>> for Signed {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<Shared>,
    ) -> Result<Self, Self::Rejection> {
        signed(shared, &parts.headers).await
    }
}

/// Who a request's cookie signs in.
pub(crate) async fn signed(shared: &Shared, headers: &HeaderMap) -> ApiResult<Signed> {
    let out = || {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "signed_out",
            "You are not signed in here.",
        )
    };
    let secret = cookie(headers).ok_or_else(out)?;
    let browser = shared.store.browser(&secret).await?.ok_or_else(out)?;
    if let Some(since) = browser.ended {
        let why = browser.ended_why.clone().unwrap_or_default();
        return Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "signed_out",
            "You were signed out here. Your draft is kept.",
        )
        .why(why)
        .with("since", since));
    }
    let account = shared
        .store
        .account(browser.account.clone())
        .await?
        .ok_or_else(out)?;
    let now = now_ms();
    if now - browser.seen > SEEN_EVERY_MS {
        shared.store.browser_seen(browser.id.clone(), now).await?;
    }
    Ok(Signed {
        account: account.id,
        browser: browser.id,
        name: account.name,
        agent: browser.agent,
    })
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value.to_owned())
}

/// A new one-time code: 60 random bits, `XXXX-XXXX-XXXX`.
pub(super) fn one_time_code() -> String {
    let mut code = String::with_capacity(14);
    for (n, byte) in random_bytes(12).into_iter().enumerate() {
        if n > 0 && n % 4 == 0 {
            code.push('-');
        }
        if let Some(letter) = CROCKFORD.get(usize::from(byte & 31)) {
            code.push(char::from(*letter));
        }
    }
    code
}

/// A code as it was typed or pasted: misread letters put right.
fn read_code(typed: &str) -> String {
    let letters: Vec<char> = typed
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| match c.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        })
        .collect();
    letters
        .chunks(4)
        .map(|c| c.iter().collect::<String>())
        .collect::<Vec<_>>()
        .join("-")
}

/// `GET /in/{token}`: signs this browser in, once, and goes to the page.
pub(super) async fn one_time(
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    headers: HeaderMap,
    token: ApiResult<Path<String>>,
) -> Response {
    let address = remote.words();
    if shared.gate.take(What::OneTime, &address).is_err() {
        return Redirect::to("/signin?why=too_many").into_response();
    }
    // An address that no link of ours ever had is like one that was used.
    let Ok(Path(token)) = token else {
        return Redirect::to("/signin?why=link_used").into_response();
    };
    match shared.store.take_one_time(&read_code(&token)).await {
        Ok(Some(account)) => match start(&shared, account, &headers, &address).await {
            Ok(cookie) => {
                let mut response = Redirect::to("/").into_response();
                response.headers_mut().insert(header::SET_COOKIE, cookie);
                response
            }
            Err(error) => error.into_response(),
        },
        // A second press on a used link, in a browser that it signed in, is no failure.
        Ok(None) if signed(&shared, &headers).await.is_ok() => Redirect::to("/").into_response(),
        Ok(None) => Redirect::to("/signin?why=link_used").into_response(),
        Err(error) => ApiError::from(error).into_response(),
    }
}

#[derive(Deserialize)]
pub(super) struct SignIn {
    name: String,
    password: String,
}

pub(super) async fn sign_in(
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    headers: HeaderMap,
    Body(body): Body<SignIn>,
) -> ApiResult<Response> {
    let address = remote.words();
    try_it(&shared, What::SignIn, &address)?;
    let account = shared
        .store
        .account_named(body.name.trim().to_owned())
        .await?;
    let stored = account.as_ref().and_then(|a| a.password.clone());
    let good = passwords::verify(body.password.clone(), stored).await;
    let Some(account) = account.filter(|_| good) else {
        let mut error = ApiError::new(
            StatusCode::FORBIDDEN,
            "wrong_password",
            "Name and password do not belong together.",
        );
        if super::pairing::looks_like_code(&body.password) {
            error = error.with("looks_like", "link_code").next(
                "That looks like a code for linking a computer. Sign in, then enter it under Settings.",
            );
        }
        return Err(error);
    };
    shared.gate.clear(What::SignIn, &address);
    let cookie = start(&shared, account.id, &headers, &address).await?;
    Ok(with_cookie(Json(json!({ "ok": true })), cookie))
}

#[derive(Deserialize)]
pub(super) struct SetUp {
    token: String,
    name: String,
    password: String,
}

/// The first account gets its name and password by a one-time link's code.
pub(super) async fn set_up(
    State(shared): State<Arc<Shared>>,
    remote: axum::Extension<Remote>,
    headers: HeaderMap,
    Body(body): Body<SetUp>,
) -> ApiResult<Response> {
    let address = remote.words();
    try_it(&shared, What::OneTime, &address)?;
    let name = good_name(&body.name)?;
    passwords::good(&body.password)?;
    let account = shared
        .store
        .take_one_time(&read_code(&body.token))
        .await?
        .ok_or_else(|| {
            ApiError::new(
                StatusCode::FORBIDDEN,
                "link_used",
                "This link was used already, or its ten minutes are over.",
            )
            .next("lembas up    prints a new one; on a server: lembas hub link")
        })?;
    let hash = passwords::hash(body.password).await?;
    if !shared
        .store
        .set_account(account.clone(), name, hash)
        .await?
    {
        return Err(ApiError::conflict(
            "name_taken",
            "Somebody has that name here.",
        ));
    }
    let cookie = start(&shared, account, &headers, &address).await?;
    Ok(with_cookie(Json(json!({ "ok": true })), cookie))
}

#[derive(Deserialize)]
pub(super) struct NewPassword {
    /// The one so far; not needed while there is none.
    old: Option<String>,
    #[serde(alias = "password")]
    new: String,
    name: Option<String>,
}

pub(super) async fn password(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Body(body): Body<NewPassword>,
) -> ApiResult<Json<Value>> {
    let account = shared
        .store
        .account(signed.account.clone())
        .await?
        .ok_or_else(|| ApiError::missing("account"))?;
    if account.password.is_some() {
        try_it(&shared, What::SignIn, &signed.account)?;
        if !passwords::verify(body.old.unwrap_or_default(), account.password).await {
            return Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "wrong_password",
                "That is not the password so far.",
            ));
        }
        shared.gate.clear(What::SignIn, &signed.account);
    }
    passwords::good(&body.new)?;
    let name = match body.name {
        Some(name) => good_name(&name)?,
        None => account.name,
    };
    let hash = passwords::hash(body.new).await?;
    if !shared.store.set_account(account.id, name, hash).await? {
        return Err(ApiError::conflict(
            "name_taken",
            "Somebody has that name here.",
        ));
    }
    end(&shared, &signed, None, "the password was changed").await?;
    Ok(Json(json!({ "ok": true })))
}

pub(super) async fn sign_out(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Response> {
    let ended = shared
        .store
        .end_browsers(
            signed.account.clone(),
            Some(signed.browser.clone()),
            None,
            "signed out here".to_owned(),
        )
        .await?;
    tell_ended(&shared, &signed.account, ended, "You signed out here.");
    let cookie = set_cookie(&shared, "", 0)?;
    Ok(with_cookie(Json(json!({ "ok": true })), cookie))
}

/// `GET /sessions`: the browsers signed in, this one marked.
pub(super) async fn browsers(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Json<Value>> {
    let list = shared.store.browsers(signed.account).await?;
    let list: Vec<Value> = list.iter().map(|b| shown(b, &signed.browser)).collect();
    Ok(Json(json!({ "sessions": list, "now": now_ms() })))
}

fn shown(b: &Browser, this: &str) -> Value {
    json!({
        "id": b.id, "agent": b.agent, "address": b.address, "made": b.made, "seen": b.seen,
        "this": b.id == this,
    })
}

pub(super) async fn end_browser(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Value>> {
    let ended = end(&shared, &signed, Some(id), "ended").await?;
    if ended == 0 {
        return Err(ApiError::missing("signed-in browser"));
    }
    Ok(Json(json!({ "ended": ended })))
}

pub(super) async fn end_others(
    signed: Signed,
    State(shared): State<Arc<Shared>>,
) -> ApiResult<Json<Value>> {
    let ended = end(&shared, &signed, None, "ended").await?;
    Ok(Json(json!({ "ended": ended })))
}

async fn end(
    shared: &Shared,
    signed: &Signed,
    one: Option<String>,
    what: &str,
) -> ApiResult<usize> {
    let why = format!("{what} from {}", signed.agent);
    let keep = one.is_none().then(|| signed.browser.clone());
    let ended = shared
        .store
        .end_browsers(signed.account.clone(), one, keep, why.clone())
        .await?;
    let count = ended.len();
    let text = format!("You were signed out here, {why}. Your draft is kept.");
    tell_ended(shared, &signed.account, ended, &text);
    Ok(count)
}

fn tell_ended(shared: &Shared, account: &str, ended: Vec<String>, text: &str) {
    for browser in ended {
        shared.events.emit(
            Audience::Browser {
                account: account.to_owned(),
                browser,
            },
            Event::json("signed_out", None, json!({ "text": text })),
        );
    }
}

async fn start(
    shared: &Shared,
    account: String,
    headers: &HeaderMap,
    address: &str,
) -> ApiResult<HeaderValue> {
    let secret = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random_bytes(32));
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .map_or_else(|| "a program".to_owned(), agent_words);
    shared
        .store
        .add_browser(&secret, account, agent, address.to_owned())
        .await?;
    set_cookie(shared, &secret, COOKIE_SECONDS)
}

fn set_cookie(shared: &Shared, secret: &str, seconds: u32) -> ApiResult<HeaderValue> {
    let secure = if shared.facts.secure { "; Secure" } else { "" };
    HeaderValue::from_str(&format!(
        "{COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/; Max-Age={seconds}{secure}"
    ))
    .map_err(|_| ApiError::bad("The cookie cannot be written."))
}

fn with_cookie(body: Json<Value>, cookie: HeaderValue) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

/// Refuses what was tried too often.
pub(super) fn too_often(shared: &Shared, what: What, who: &str) -> ApiResult<()> {
    shared.gate.check(what, who).map_err(wait_for)
}

/// Counts a try before it is made, and refuses one too many.
fn try_it(shared: &Shared, what: What, who: &str) -> ApiResult<()> {
    shared.gate.take(what, who).map_err(wait_for)
}

fn wait_for(wait: Duration) -> ApiError {
    let minutes = wait.as_secs().div_ceil(60).max(1);
    ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_often",
        format!("That was tried too often. It can be tried again in {minutes} min."),
    )
    .retry_after(wait.as_secs().max(1))
}

fn good_name(name: &str) -> ApiResult<String> {
    let shown = escape::label(name, usize::MAX);
    // What would be kept is what was typed, or the person could not sign in with it.
    if shown != name.trim() || shown.is_empty() || shown.chars().count() > 64 {
        return Err(ApiError::bad(
            "A name has 1 to 64 characters that can be seen.",
        ));
    }
    Ok(shown)
}

/// What a browser is, from what it says of itself: `Firefox on Linux`.
fn agent_words(agent: &str) -> String {
    let has = |name: &str| agent.contains(name);
    let browser = [
        ("Firefox/", "Firefox"),
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Chromium/", "Chromium"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]
    .into_iter()
    .find(|(mark, _)| has(mark))
    .map(|(_, name)| name);
    let system = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS X", "macOS"),
        ("Windows", "Windows"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]
    .into_iter()
    .find(|(mark, _)| has(mark))
    .map(|(_, name)| name);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => agent
            .split(['/', ' '])
            .next()
            .filter(|w| !w.is_empty())
            .map_or_else(|| "a program".to_owned(), |w| w.chars().take(32).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = one_time_code();
        assert_eq!(code.len(), 14);
        assert_eq!(read_code(&code.to_lowercase().replace('-', " ")), code);
        assert_eq!(read_code("7qx4-93km-t2pO"), "7QX4-93KM-T2P0");
        assert_eq!(read_code("Il"), "11");
    }

    #[test]
    fn browsers_are_named_in_words() {
        let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        assert_eq!(agent_words(firefox), "Firefox on Linux");
        assert_eq!(agent_words("curl/8.5.0"), "curl");
        assert_eq!(agent_words(""), "a program");
    }
}
