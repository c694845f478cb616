//! Measuring: Alea beside Linux (`bench`, `baseline`, `growth`), where the time goes (`profile`), how late an urgent task runs
//! (`latency`), the published experiments (`experiments`), what tools cost who is watched (`tools`), and the page that shows it (`report`).
#![forbid(unsafe_code)]

pub mod baseline;
pub mod bench;
pub mod commands;
pub mod experiments;
pub mod figures;
pub mod flame;
pub mod growth;
pub mod latency;
pub mod profile;
pub mod report;
pub mod tools;
