//! The paths in a piece of Rust source, found without a compiler: what `use` imports, and paths in the middle of code.

/// A path that source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub path: Vec<String>,
    pub line: usize,
    /// The name that a `use` gives it.
    pub imported_as: Option<String>,
    /// The `use` is seen outside the module.
    pub public: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Path,
    Sign(char),
}

struct Tokens<'a> {
    all: Vec<(usize, Token<'a>)>,
    at: usize,
}

/// All paths of at least two parts that might lead to a module of the crate.
pub fn references(code: &str) -> Vec<Reference> {
    let mut tokens = Tokens { all: tokens(code), at: 0 };
    let mut found = Vec::new();
    let mut public = false;
    while let Some(&(line, token)) = tokens.all.get(tokens.at) {
        match token {
            Token::Word("pub") => {
                public = true;
                tokens.at += 1;
                if tokens.sign('(') {
                    while !tokens.sign(')') && tokens.at < tokens.all.len() {
                        tokens.at += 1;
                    }
                }
                continue;
            }
            Token::Word("use") => {
                tokens.at += 1;
                tokens.tree(&mut Vec::new(), public, &mut found);
            }
            Token::Word(_) => {
                let path = tokens.path();
                if path.len() > 1 {
                    found.push(Reference { path, line, imported_as: None, public: false });
                }
            }
            _ => tokens.at += 1,
        }
        public = false;
    }
    found
}

/// The names of macros that the crate exports.
pub fn exported_macros(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[macro_export]") {
        rest = &rest[at..];
        let Some(at) = rest.find("macro_rules!") else { break };
        rest = &rest[at + "macro_rules!".len()..];
        let name: String =
            rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        names.push(name);
    }
    names
}

impl Tokens<'_> {
    fn peek(&self) -> Option<Token<'_>> {
        self.all.get(self.at).map(|&(_, token)| token)
    }

    /// Skips `sign` if it is next.
    fn sign(&mut self, sign: char) -> bool {
        let is = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(is);
        is
    }

    /// The path that begins here.
    fn path(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            path.push(word.to_owned());
            self.at += 1;
            if self.peek() != Some(Token::Path) {
                break;
            }
            self.at += 1;
        }
        path
    }

    /// One tree of a `use`, behind `prefix`.
    fn tree(&mut self, prefix: &mut Vec<String>, public: bool, found: &mut Vec<Reference>) {
        let kept = prefix.len();
        let line = self.all.get(self.at).map_or(0, |&(line, _)| line);
        loop {
            match self.peek() {
                Some(Token::Word(word)) => {
                    prefix.push(word.to_owned());
                    self.at += 1;
                    if self.peek() != Some(Token::Path) {
                        break;
                    }
                }
                Some(Token::Path) => self.at += 1,
                Some(Token::Sign('{')) => {
                    self.at += 1;
                    while !self.sign('}') && self.at < self.all.len() {
                        self.tree(prefix, public, found);
                        self.sign(',');
                    }
                    prefix.truncate(kept);
                    return;
                }
                Some(Token::Sign('*')) => {
                    self.at += 1;
                    break;
                }
                _ => {
                    self.at += 1;
                    prefix.truncate(kept);
                    return;
                }
            }
        }
        let mut name = prefix.last().cloned();
        if name.as_deref() == Some("self") {
            prefix.pop();
            name = prefix.last().cloned();
        }
        if self.peek() == Some(Token::Word("as")) {
            self.at += 1;
            if let Some(Token::Word(word)) = self.peek() {
                name = Some(word.to_owned());
                self.at += 1;
            }
        }
        if !prefix.is_empty() {
            let path = prefix.clone();
            found.push(Reference { path, line, imported_as: name, public });
        }
        prefix.truncate(kept);
    }
}

fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let word =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let len = if word > 0 {
                all.push((number, Token::Word(&rest[..word])));
                word
            } else if rest.starts_with("::") {
                all.push((number, Token::Path));
                2
            } else {
                if !c.is_whitespace() {
                    all.push((number, Token::Sign(c)));
                }
                c.len_utf8()
            };
            rest = &rest[len..];
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        let show = |found: Reference| {
            let name = found.imported_as.map_or(String::new(), |name| format!(" as {name}"));
            let public = if found.public { "pub " } else { "" };
            format!("{}:{public}{}{name}", found.line, found.path.join("::"))
        };
        references(code).into_iter().map(show).collect()
    }

    #[test]
    fn trees_of_uses() {
        assert_eq!(
            paths("use crate::{a::{self, B as C}, d::*};\npub(super) use super::x;\npub use y::Z;"),
            [
                "1:crate::a as a",
                "1:crate::a::B as C",
                "1:crate::d as d",
                "2:pub super::x as x",
                "3:pub y::Z as Z",
            ]
        );
    }

    #[test]
    fn paths_in_code() {
        assert_eq!(
            paths(
                "fn f(x: super::X) { crate::a::go(x); crate::per! {} y.z }\npub(in crate::fs) fn g() {}"
            ),
            ["1:super::X", "1:crate::a::go", "1:crate::per"]
        );
    }

    #[test]
    fn macros_that_are_exported() {
        let code = "macro_rules! own { }\n#[macro_export]\nmacro_rules! shown { }";
        assert_eq!(exported_macros(code), ["shown"]);
    }
}
