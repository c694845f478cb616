//! The rules, one file for each. A rule looks at the tree and reports faults; it changes nothing.

pub mod circles;
pub mod commands;
pub mod figures;
pub mod floors;
pub mod growth;
pub mod heads;
pub mod length;
pub mod named;
pub mod once;
pub mod opening;
pub mod pace;
pub mod seams;
pub mod text;
pub mod workspace;
