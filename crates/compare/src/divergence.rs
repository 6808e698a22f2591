//! First divergence: where a faulty trace leaves what the normal one did.
