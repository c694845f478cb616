//! What of the command line init gets, as on Linux: of the words that the kernel does not know `name=value` is part
//! of its environment and a bare word an argument, and so is everything behind `--`.
//!
//! Owns nothing. Never fails: more words than Linux takes end in its panic.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "boot: before any user")]
#![forbid(unsafe_code)]

use crate::cmdline::{self, Parameter};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most arguments, the program's name among them, and most words of environment (Linux's `MAX_INIT_ARGS` + 1).
const MOST: usize = 33;

/// The arguments, without the program's name, and the environment.
pub(super) struct InitWords {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<String>,
}

impl InitWords {
    pub(super) fn gather() -> Self {
        let environment = ["HOME=/", "TERM=linux"].map(String::from).into();
        let mut words = Self { arguments: Vec::new(), environment };
        let mut unknown = String::new();
        for parameter in cmdline::parameters() {
            if matches!(parameter, Parameter { name: "init" | "rdinit", value: Some(_) }) {
                // What boot loaders put before it is not meant for the program named.
                words.arguments.clear();
            } else if !parameter.is_kernels() {
                unknown.push(' ');
                unknown.push_str(&text(&parameter));
                words.add(&parameter);
            }
        }
        if !unknown.is_empty() {
            log::info!(
                "Unknown kernel command line parameters \"{}\", will be passed to user space.",
                unknown.trim_start()
            );
        }
        for parameter in cmdline::init_arguments() {
            words.add_argument(&parameter);
        }
        words
    }

    fn add(&mut self, parameter: &Parameter) {
        if parameter.value.is_none() {
            return self.add_argument(parameter);
        }
        let same = |word: &String| {
            word.strip_prefix(parameter.name).is_some_and(|rest| rest.starts_with('='))
        };
        match self.environment.iter().position(same) {
            Some(at) => self.environment[at] = text(parameter),
            None if self.environment.len() == MOST => too_many("env", parameter),
            None => self.environment.push(text(parameter)),
        }
    }

    fn add_argument(&mut self, parameter: &Parameter) {
        if self.arguments.len() + 1 == MOST {
            too_many("init", parameter);
        }
        self.arguments.push(text(parameter));
    }
}

fn text(parameter: &Parameter) -> String {
    let (equals, value) = parameter.value.map_or(("", ""), |value| ("=", value));
    format!("{}{equals}{value}", parameter.name)
}

fn too_many(what: &str, parameter: &Parameter) -> ! {
    panic!("Too many boot {what} vars at `{}'", text(parameter))
}
