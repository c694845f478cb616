//! Measuring: Alea beside Linux (`bench`, `baseline`, `growth`), where the time goes (`profile`), how late an urgent task runs
//! (`latency`), and the page that shows it (`report`).
#![forbid(unsafe_code)]

pub mod baseline;
pub mod bench;
pub mod commands;
pub mod figures;
pub mod growth;
pub mod latency;
pub mod profile;
pub mod report;
