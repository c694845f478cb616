//! The live entropy service.
