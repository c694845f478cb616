//! Pictures of the page, taken by headless Chromium, and what is wrong with them.
//!
//! The page is shown as a desktop and a phone show it, in light and dark. Chromium itself says what does not fit:
//! it is asked for the boxes of everything on the page, because a picture can only be looked at by people. The page
//! lies in a frame of the wanted width: Chromium's own window has a least width, which is more than a phone's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::chart::escape;
use xtask_host::process;

/// How the page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub name: &'static str,
    pub width: u32,
    pub dark: bool,
}

pub const VIEWS: [View; 4] = [
    View { name: "desktop", width: 1280, dark: false },
    View { name: "desktop-dark", width: 1280, dark: true },
    View { name: "phone", width: 390, dark: false },
    View { name: "phone-dark", width: 390, dark: true },
];

/// Asks the page for what a reader would stumble over.
const LOOK: &str = r#"
addEventListener('load', () => {
  const frame = document.querySelector('iframe'), page = frame.contentDocument, width = frame.clientWidth;
  const height = page.documentElement.scrollHeight;
  frame.style.height = height + 'px';
  const shown = e => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0 };
  const wrong = [], words = e => (e.textContent || e.className || '').trim().slice(0, 40);
  for (const e of page.querySelectorAll('body *'))
    if (!e.closest('.scroll') && shown(e) && e.getBoundingClientRect().right > width + 1)
      wrong.push('too wide: ' + e.tagName + ' ' + words(e));
  for (const svg of page.querySelectorAll('svg')) {
    if (!shown(svg)) continue;
    const edge = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].filter(shown);
    const boxes = texts.map(t => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      if (a.left < edge.left - 1 || a.right > edge.right + 1 || a.top < edge.top - 1 || a.bottom > edge.bottom + 1)
        wrong.push('cut off: ' + words(texts[i]));
      if (a.height < 9) wrong.push('too small: ' + words(texts[i]));
      for (let j = i + 1; j < boxes.length; j++) {
        const b = boxes[j];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
          wrong.push('on each other: ' + words(texts[i]) + ', ' + words(texts[j]));
      }
    });
  }
  const ink = getComputedStyle(page.body).color, back = getComputedStyle(page.body).backgroundColor;
  const light = c => { const [r, g, b] = c.match(/\d+/g).map(Number); return (r * 3 + g * 6 + b) / 10 };
  document.documentElement.dataset.found = JSON.stringify({
    height, wrong, back: light(back), ink: light(ink), charts: [...page.querySelectorAll('svg')].filter(shown).length,
  });
});
"#;

/// What Chromium says of one view.
#[derive(Deserialize, Debug)]
pub struct Found {
    pub height: u32,
    /// What does not fit.
    pub wrong: Vec<String>,
    /// How light background and text are, 0 to 255.
    pub back: f64,
    pub ink: f64,
    /// Drawings that can be seen.
    pub charts: u32,
}

/// Whether there is a Chromium.
pub fn is_possible() -> bool {
    process::which("chromium").is_some()
}

/// Takes a picture of the page in each view and checks it: the pictures.
///
/// # Errors
/// What a reader would stumble over, or Chromium's.
pub fn take(html: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pictures = Vec::new();
    let mut wrong = Vec::new();
    for view in VIEWS {
        let found = look(html, view)?;
        wrong.extend(found.wrong.iter().map(|what| format!("{}: {what}", view.name)));
        if (found.back < 100.0) != view.dark || (found.back - found.ink).abs() < 100.0 {
            wrong.push(format!("{}: text {} on {}", view.name, found.ink, found.back));
        }
        if found.charts == 0 {
            wrong.push(format!("{}: nothing is drawn", view.name));
        }
        let picture = folder.join(format!("{}.png", view.name));
        chromium(html, view, found.height, &[&format!("--screenshot={}", picture.display())])?;
        pictures.push(picture);
    }
    if !wrong.is_empty() {
        bail!("the page can be read badly:\n{}", wrong.join("\n"));
    }
    Ok(pictures)
}

/// What Chromium says of the page in `view`.
pub fn look(html: &str, view: View) -> Result<Found> {
    let page = chromium(html, view, 1000, &["--dump-dom"])?;
    let found = page.split_once("data-found=\"").and_then(|(_, rest)| rest.split_once('"'));
    let (found, _) = found.context("Chromium did not show the page")?;
    let found = found.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
    Ok(serde_json::from_str(&found.replace("&amp;", "&"))?)
}

fn chromium(html: &str, view: View, height: u32, args: &[&str]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let around = folder.path().join("view.html");
    fs::write(
        &around,
        format!(
            "<!doctype html><html><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" \
             content=\"light dark\"><style>body{{margin:0}}iframe{{border:0;display:block;\
             width:{}px;height:{height}px}}</style></head><body><iframe srcdoc=\"{}\"></iframe>\
             <script>{LOOK}</script></body></html>",
            view.width,
            escape(html)
        ),
    )?;
    let mut command = Command::new("timeout");
    command
        .args(["600", "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--no-first-run"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--blink-settings=preferredColorScheme={}", u32::from(!view.dark)))
        .arg(format!("--window-size={},{height}", view.width))
        .args(args)
        .arg(format!("file://{}", around.display()));
    process::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::super::{experiments, page};
    use super::*;

    /// Where no Chromium is, or none that runs here, there is nothing to be said about the page.
    #[test]
    fn the_page_can_be_read_on_a_desktop_and_a_phone() {
        let (bench, profile) = (page::tests::bench(), page::tests::profile());
        let html = page::render(Some(&bench), Some(&profile), true).unwrap();
        let experiments = experiments::render(&experiments::tests::part(false)).unwrap();
        if !is_possible() {
            eprintln!("skipped: no chromium");
            return;
        }
        if let Err(error) = look(&html, VIEWS[0]) {
            eprintln!("skipped: {error:#}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for (html, least) in [(html, 20_000), (experiments, 10_000)] {
            for picture in take(&html, folder.path()).unwrap() {
                let bytes = fs::read(&picture).unwrap();
                let is_whole = bytes.starts_with(b"\x89PNG") && bytes.len() > least;
                assert!(is_whole, "{}", picture.display());
            }
        }
    }
}
