//! The environment variables that are read, in one table. Nothing else reads the environment.

use std::ffi::OsString;

/// A variable that is read, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var {
    pub name: &'static str,
    /// One line for `lembas help environment`; empty for the system's own.
    pub about: &'static str,
}

macro_rules! table {
    ($($ident:ident = $name:literal, $about:literal;)*) => {
        $(pub const $ident: Var = Var { name: $name, about: $about };)*
        /// All of them.
        pub const TABLE: &[Var] = &[$($ident),*];
    };
}

table! {
    LEMBAS_DATA = "LEMBAS_DATA", "A folder that holds everything lembas keeps, as --data.";
    LEMBAS_LOG = "LEMBAS_LOG", "What is logged to stderr: error, warn, info, debug, trace, or module=level,…";
    NO_COLOR = "NO_COLOR", "When set, no colour is written.";
    HTTPS_PROXY = "HTTPS_PROXY", "A proxy for the link and for model requests.";
    HTTPS_PROXY_LOWER = "https_proxy", "";
    HTTP_PROXY_LOWER = "http_proxy", "";
    ALL_PROXY = "ALL_PROXY", "";
    ALL_PROXY_LOWER = "all_proxy", "";
    NO_PROXY = "NO_PROXY", "Hosts that are reached without the proxy.";
    NO_PROXY_LOWER = "no_proxy", "";
    VISUAL = "VISUAL", "The editor of lembas config edit; EDITOR when it is not set.";
    EDITOR = "EDITOR", "";
    HOME = "HOME", "";
    PATH = "PATH", "";
    SHELL = "SHELL", "";
    USER = "USER", "";
    TERM = "TERM", "";
    COLUMNS = "COLUMNS", "";
    SSH_CONNECTION = "SSH_CONNECTION", "";
    DISPLAY = "DISPLAY", "";
    WAYLAND_DISPLAY = "WAYLAND_DISPLAY", "";
    XDG_RUNTIME_DIR = "XDG_RUNTIME_DIR", "";
}

/// The value of a variable; none when it is not set or empty.
#[expect(clippy::disallowed_methods, reason = "this is the env module")]
pub fn os(var: &Var) -> Option<OsString> {
    std::env::var_os(var.name).filter(|value| !value.is_empty())
}

/// As [`os`], where the value is UTF-8.
pub fn text(var: &Var) -> Option<String> {
    os(var)?.into_string().ok()
}

/// The whole environment of this process, from which `exec` picks what a command gets.
pub fn all() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}
