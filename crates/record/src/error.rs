//! Why a command was not started.

/// Why the command was not started. One line each: what was expected, what was found, where.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    status: u8,
    untraceable: bool,
}

impl Error {
    /// The exit status that says so: 127 no such program, 126 not executable, 125 anything else.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }

    pub(crate) fn new(status: u8, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status,
            untraceable: false,
        }
    }

    /// 125: our own.
    pub(crate) fn own(message: impl Into<String>) -> Self {
        Self::new(125, message)
    }

    /// 125: the program could be run, but not be recorded.
    pub(crate) fn untraceable(message: impl Into<String>) -> Self {
        Self {
            untraceable: true,
            ..Self::new(125, message)
        }
    }

    pub(crate) fn is_untraceable(&self) -> bool {
        self.untraceable
    }
}
