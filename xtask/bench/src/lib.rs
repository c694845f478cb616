//! Measuring: Alea beside Linux (`bench`, `baseline`, `growth`), where the time goes (`profile`), how late an urgent task runs
//! (`latency`), how CPUs are shared among many (`load`), the published experiments (`experiments`), what tools cost who is watched (`tools`), what people run (`apps`), both in `counted` instructions, and the page that shows it (`report`).
#![forbid(unsafe_code)]

mod apps;
pub mod baseline;
pub mod bench;
pub mod commands;
mod counted;
pub mod experiments;
pub mod figures;
pub mod flame;
pub mod growth;
pub mod latency;
pub mod load;
pub mod profile;
pub mod report;
pub mod tools;
