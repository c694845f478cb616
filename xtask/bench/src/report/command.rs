//! `cargo xtask report`: the page anew from what was measured, and a look at it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use super::{folder, picture, write_page};
use xtask_host::paths;

/// Writes the page from the data below target/alea/report/, and checks with headless Chromium that it can be read.
#[derive(Args)]
pub struct Report {}

impl Report {
    pub fn run(self) -> Result<ExitCode> {
        let page = write_page(&folder()?)?;
        println!("{}", paths::shown(&page));
        if !picture::is_possible() {
            bail!("there is no chromium to look at it with (apt install chromium)");
        }
        for picture in picture::take(&std::fs::read_to_string(&page)?, &folder()?)? {
            println!("{}", paths::shown(&picture));
        }
        Ok(ExitCode::SUCCESS)
    }
}
