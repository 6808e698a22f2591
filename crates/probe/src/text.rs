//! Text in a buffer of fixed size: paths and facts.

/// At most `N` bytes of text. What does not fit is cut off, and [`Text::is_whole`] says so.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
    cut: bool,
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const fn new() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
            cut: false,
        }
    }

    /// The text so far.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Whether everything fitted.
    pub fn is_whole(&self) -> bool {
        !self.cut
    }

    /// Puts `more` behind it, if it fits as a whole.
    pub fn push(&mut self, more: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + more.len()) {
            Some(place) => {
                place.copy_from_slice(more);
                self.length += more.len();
            }
            None => self.cut = true,
        }
    }

    /// Puts a decimal number behind it.
    pub fn push_decimal(&mut self, number: u64) {
        self.push_digits(number, 10);
    }

    /// Puts a hexadecimal number behind it.
    pub fn push_hexadecimal(&mut self, number: u64) {
        self.push_digits(number, 16);
    }

    fn push_digits(&mut self, mut number: u64, base: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        for place in digits.iter_mut().rev() {
            let digit = (number % base) as u8;
            *place = if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            };
            at -= 1;
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(at..).unwrap_or(&[]));
    }

    /// Puts a byte in hexadecimal behind it.
    pub fn push_hexadecimal_byte(&mut self, byte: u8) {
        self.push_digits(u64::from(byte >> 4), 16);
        self.push_digits(u64::from(byte & 15), 16);
    }

    /// Puts a value of a facts line behind it: a tab, then the bytes, escaped.
    pub fn push_value(&mut self, value: &[u8]) {
        self.push(b"\t");
        for byte in value {
            match byte {
                b'\t' => self.push(b"\\t"),
                b'\n' => self.push(b"\\n"),
                b'\\' => self.push(b"\\\\"),
                other => self.push(&[*other]),
            }
        }
    }

    /// Adds a line of facts; it is left out as a whole where it does not fit.
    pub fn push_line(&mut self, word: &str, values: &[&[u8]]) -> bool {
        let before = self.length;
        let was_cut = self.cut;
        self.push(word.as_bytes());
        for value in values {
            self.push_value(value);
        }
        self.push(b"\n");
        let fits = !self.cut;
        if !fits {
            self.truncate(before);
        }
        self.cut = was_cut;
        fits
    }

    /// Goes back to an earlier length.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.cut = false;
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }
}

/// The number that `digits` begins with.
pub fn decimal(digits: &[u8]) -> u64 {
    digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0u64, |number, byte| {
            number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'))
        })
}

/// The bytes up to the first zero.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// What follows the last slash.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
