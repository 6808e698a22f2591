//! ParLOT's LZ+ZE, to be written.
