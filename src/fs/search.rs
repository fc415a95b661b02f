//! Searching file contents with a regular expression.

use std::path::{Path, PathBuf};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::walk::{self, MAX_SEEN, Scope};
use crate::rt::CancellationToken;

/// Bytes of one line that is shown; the rest of a longer one is left out with a mark.
const MAX_LINE: usize = 500;
/// Bytes of a file that is searched. Longer ones are counted and said.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// What to search for.
#[derive(Clone, Debug)]
pub struct Query {
    pub pattern: String,
    pub ignore_case: bool,
    /// A glob that file names must match.
    pub include: Option<String>,
    /// Lines before and after each match.
    pub context: usize,
    /// Matching lines at most; the search ends there.
    pub most: usize,
}

/// What was found, as lines to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub files: Vec<FileFound>,
    pub matches: usize,
    /// The search ended at its limit or was stopped; there may be more.
    pub cut: bool,
    /// Files that are too long or may not be looked into without asking.
    pub passed_by: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFound {
    pub path: PathBuf,
    /// Line number, whether it matches, and the line; a gap in numbers is a gap in the file.
    pub lines: Vec<(u64, bool, String)>,
}

/// Searches a folder, or one file.
///
/// # Errors
/// In words, when the expression or the glob cannot be read.
pub fn search(scope: Scope<'_>, query: &Query, stop: &CancellationToken) -> Result<Found, String> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(query.ignore_case)
        .line_terminator(Some(b'\n'))
        .size_limit(10 * 1024 * 1024)
        .build(&query.pattern)
        .map_err(|error| {
            // The library draws the place over several lines; its last one says what is wrong.
            let words = error.to_string();
            let last = words.lines().last().unwrap_or_default();
            let last = last.strip_prefix("error: ").unwrap_or(last);
            format!("the expression `{}` cannot be read: {last}", query.pattern)
        })?;
    let include = query.include.as_deref().map(walk::matcher).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context)
        .after_context(query.context)
        .binary_detection(BinaryDetection::quit(0))
        .build();
    let mut found = Found::default();
    let mut walk = scope.builder(None);
    walk.sort_by_file_path(Ord::cmp);
    for entry in walk.build().filter_map(Result::ok).take(MAX_SEEN) {
        if stop.is_cancelled() {
            found.cut = true;
            break;
        }
        if !entry.file_type().is_some_and(|t| t.is_file()) {
            continue;
        }
        let path = entry.path();
        let under = path.strip_prefix(scope.folder()).unwrap_or(path);
        if include.as_ref().is_some_and(|glob| !glob.is_match(under)) {
            continue;
        }
        if scope.hides(path) || entry.metadata().is_ok_and(|about| about.len() > MAX_FILE) {
            found.passed_by += 1;
            continue;
        }
        one(&mut searcher, &matcher, path, under, query, &mut found);
        if found.matches >= query.most {
            found.cut = true;
            break;
        }
    }
    Ok(found)
}

fn one(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    under: &Path,
    query: &Query,
    found: &mut Found,
) {
    let Ok((file, _)) = super::open::file(path) else {
        return;
    };
    let mut sink = Lines {
        lines: Vec::new(),
        matches: 0,
        left: query.most.saturating_sub(found.matches),
    };
    // A file that cannot be read to its end gives what was found until then.
    let _partial = searcher.search_file(matcher, &file, &mut sink);
    found.matches += sink.matches;
    if !sink.lines.is_empty() {
        found.files.push(FileFound {
            path: if under.as_os_str().is_empty() {
                path.to_owned()
            } else {
                under.to_owned()
            },
            lines: sink.lines,
        });
    }
}

struct Lines {
    lines: Vec<(u64, bool, String)>,
    matches: usize,
    left: usize,
}

impl Lines {
    fn push(&mut self, number: Option<u64>, matches: bool, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let mut line = crate::text::cut::prefix(text, MAX_LINE).to_owned();
        if line.len() < text.len() {
            line.push('…');
        }
        self.lines.push((number.unwrap_or(0), matches, line));
    }
}

impl Sink for Lines {
    type Error = std::io::Error;

    fn matched(
        &mut self,
        _searcher: &Searcher,
        found: &SinkMatch<'_>,
    ) -> Result<bool, Self::Error> {
        self.push(found.line_number(), true, found.bytes());
        self.matches += 1;
        self.left = self.left.saturating_sub(1);
        Ok(self.left > 0)
    }

    fn context(
        &mut self,
        _searcher: &Searcher,
        context: &SinkContext<'_>,
    ) -> Result<bool, Self::Error> {
        self.push(context.line_number(), false, context.bytes());
        Ok(true)
    }
}
