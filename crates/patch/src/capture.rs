//! From the parameters of a function of MPI to the program by which the probe takes a call's arguments
//! ([`lockstep_format::capture`]).

use lockstep_api::mpi::{Does, Function, Kind, Language, Making};
use lockstep_format::capture::{MOST_CAPTURE, op, wide};

/// The capture program of a function; `None` where the row says nothing of how many results there are, and where there is nothing to
/// take of a call that neither hears of others nor tells them anything.
pub(crate) fn capture(function: &Function) -> Option<Capture> {
    let mut capture = Capture {
        bytes: [0; MOST_CAPTURE],
        length: 0,
    };
    let is_c = function.language == Language::C;
    let mut counts = Counts::default();
    for parameter in function.parameters().filter(|it| !it.kind.is_result()) {
        let code = match parameter.kind {
            Kind::Ignored => continue,
            behind if behind.is_behind() => continue,
            Kind::Int | Kind::Peer | Kind::Tag | Kind::Root => {
                counts.see(parameter.position);
                match (
                    is_c,
                    function.has_large_counts() && parameter.name.ends_with("count"),
                ) {
                    (true, false) => op::INT,
                    (true, true) => op::LONG,
                    (false, _) => op::INT_AT,
                }
            }
            Kind::CommAt
            | Kind::DatatypeAt
            | Kind::OpAt
            | Kind::GroupAt
            | Kind::WindowAt
            | Kind::RequestAt
            | Kind::MessageAt
            | Kind::InfoAt
            | Kind::ErrhandlerAt
                if is_c =>
            {
                op::HANDLE_AT
            }
            Kind::Long if is_c => op::LONG,
            Kind::Long => op::LONG_AT,
            // A pointer with every library.
            Kind::File if is_c => op::LONG,
            Kind::FileAt if is_c => op::LONG_AT,
            Kind::KeyvalAt => op::INT_AT,
            Kind::Requests | Kind::Datatypes if is_c => op::HANDLES_AT | counts.first << 4,
            Kind::Requests | Kind::Datatypes => op::INTS_COUNTED_AT | counts.first << 4,
            Kind::Ints if is_c => op::INTS_AT | counts.last << 4,
            Kind::Ints => op::INTS_COUNTED_AT | counts.last << 4,
            _ if is_c => op::HANDLE,
            _ => op::INT_AT,
        };
        capture.put(code, parameter.position);
    }
    let comm = function.parameters().find(|it| it.kind == Kind::Comm);
    let comm = comm.map_or(0, |it| (it.position as u8) << 4);
    let has_root = function.parameters().any(|it| it.kind == Kind::Root);
    let second = |which: u8, position: usize| (which + u8::from(!is_c)) << 4 | position as u8;
    for parameter in function.parameters().filter(|it| it.kind.is_behind()) {
        let position = parameter.position;
        let (code, place) = match parameter.kind {
            Kind::Places if is_c => (op::INTS_AT | counts.first << 4, position as u8),
            Kind::Places => (op::INTS_COUNTED_AT | counts.first << 4, position as u8),
            Kind::Displacements => (
                op::WIDE | counts.first << 4,
                second(wide::LONGS_AT, position),
            ),
            Kind::Ranges => (
                op::WIDE | counts.first << 4,
                second(wide::TRIPLES_AT, position),
            ),
            Kind::Shares if has_root => (op::WIDE | comm, second(wide::INTS_AT_ROOT, position)),
            Kind::Shares => (op::WIDE | comm, second(wide::INTS_OF_RANKS, position)),
            Kind::Dimensions => (op::WIDE | comm, second(wide::INTS_OF_DIMENSIONS, position)),
            Kind::Distance if is_c => (op::LONG, position as u8),
            Kind::Distance => (op::LONG_AT, position as u8),
            _ => (op::BUFFER, position as u8),
        };
        capture.put(code, place.into());
    }
    capture.end();
    let mut given = None;
    for parameter in function.parameters().filter(|it| it.kind.is_result()) {
        let code = match parameter.kind {
            Kind::Result | Kind::NewPeer | Kind::NewKeyval => op::INT_AT,
            Kind::NewFile if is_c => op::LONG_AT,
            Kind::Flag => op::FLAG_AT,
            Kind::ResultCount => {
                given = Some((parameter.position as u8) << 4);
                op::INT_AT
            }
            Kind::Results => op::INTS_COUNTED_AT | given?,
            Kind::Status => op::STATUS_AT,
            Kind::Statuses => match given {
                Some(count) => op::STATUSES_COUNTED_AT | count,
                None if is_c => op::STATUSES_AT | counts.first << 4,
                None => op::STATUSES_COUNTED_AT | counts.first << 4,
            },
            _ if is_c => op::HANDLE_AT,
            _ => op::INT_AT,
        };
        capture.put(code, parameter.position);
        let (learns, of) = match (function.meaning().does, parameter.name) {
            (Does::Query, "size") => (wide::SIZE, comm),
            (Does::Query, "rank") => (wide::RANK, comm),
            (Does::Communicator(Making::Grid), _) => (wide::GRID, counts.first << 4),
            _ => continue,
        };
        capture.put(op::WIDE | of, second(learns, parameter.position).into());
    }
    if tells_errors(function) {
        capture.put(op::CODE, 0);
    }
    capture.end();
    let is_empty = capture.length == 2;
    Some(capture).filter(|_| !is_empty || !function.meaning().is_local())
}

/// Whether an error that the function returns is taken: of those that are looked at when they return anyhow, and of those of files,
/// whose errors do not end a job. Fortran's is written elsewhere.
fn tells_errors(function: &Function) -> bool {
    let is_looked_at = |kind: Kind| kind.is_result() || matches!(kind, Kind::File | Kind::FileAt);
    function.language == Language::C && function.parameters().any(|it| is_looked_at(it.kind))
}

/// Which parameters count arrays.
#[derive(Default)]
struct Counts {
    seen: bool,
    first: u8,
    last: u8,
}

impl Counts {
    fn see(&mut self, position: usize) {
        if !self.seen {
            self.first = position as u8;
        }
        self.seen = true;
        self.last = position as u8;
    }
}

/// A capture program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capture {
    bytes: [u8; MOST_CAPTURE],
    length: usize,
}

impl Capture {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    fn put(&mut self, code: u8, parameter: usize) {
        // Room for both ends stays.
        if self.length + 4 <= MOST_CAPTURE
            && let Some([first, second]) = self.bytes.get_mut(self.length..self.length + 2)
        {
            (*first, *second) = (code, parameter as u8);
            self.length += 2;
        }
    }

    fn end(&mut self) {
        if let Some(byte) = self.bytes.get_mut(self.length) {
            *byte = op::END;
            self.length += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use lockstep_api::mpi::functions;
    use lockstep_format::capture::MOST_PARAMETERS;

    fn program(name: &str) -> Vec<u8> {
        let function = Function::of(name.as_bytes()).unwrap();
        capture(&function).unwrap().bytes().to_vec()
    }

    #[test]
    fn capture_programs() {
        use op::*;
        assert_eq!(
            program("MPI_Send"),
            [
                INT, 1, HANDLE, 2, INT, 3, INT, 4, HANDLE, 5, BUFFER, 0, END, END
            ]
        );
        assert_eq!(
            program("mpi_isend_"),
            [
                INT_AT, 1, INT_AT, 2, INT_AT, 3, INT_AT, 4, INT_AT, 5, BUFFER, 0, END, INT_AT, 6,
                END
            ]
        );
        assert_eq!(
            program("MPI_Waitall"),
            [INT, 0, HANDLES_AT, 1, END, STATUSES_AT, 2, CODE, 0, END]
        );
        assert_eq!(
            program("mpi_waitsome_"),
            [
                INT_AT,
                0,
                INTS_COUNTED_AT,
                1,
                END,
                INT_AT,
                2,
                INTS_COUNTED_AT | 2 << 4,
                3,
                STATUSES_COUNTED_AT | 2 << 4,
                4,
                END
            ]
        );
        assert_eq!(program("MPI_Send_c")[..2], [LONG, 1]);
        // Their arrays have elements of 64 bits.
        assert!(program("MPI_Alltoallv").contains(&(WIDE | 8 << 4)));
        assert!(!program("MPI_Alltoallv_c").contains(&(WIDE | 8 << 4)));
        assert_eq!(
            program("mpi_type_create_struct_"),
            [
                INT_AT,
                0,
                INTS_COUNTED_AT,
                1,
                INTS_COUNTED_AT,
                3,
                WIDE,
                wide::LONGS_COUNTED_AT << 4 | 2,
                END,
                INT_AT,
                4,
                END
            ]
        );
        assert_eq!(
            program("MPI_Comm_size"),
            [
                HANDLE,
                0,
                END,
                INT_AT,
                1,
                WIDE,
                wide::SIZE << 4 | 1,
                CODE,
                0,
                END
            ]
        );
        assert_eq!(
            program("MPI_Cart_sub"),
            [
                HANDLE,
                0,
                WIDE,
                wide::INTS_OF_DIMENSIONS << 4 | 1,
                END,
                HANDLE_AT,
                2,
                CODE,
                0,
                END
            ]
        );
        let closed = program("MPI_File_close");
        assert_eq!(closed, [LONG_AT, 0, END, CODE, 0, END]);
        let grid = program("mpi_cart_create_");
        assert!(grid.ends_with(&[END, INT_AT, 5, WIDE | 1 << 4, wide::GRID_AT << 4 | 5, END]));
        let scattered = program("MPI_Scatterv");
        assert!(scattered.ends_with(&[
            BUFFER,
            0,
            WIDE | 8 << 4,
            wide::INTS_AT_ROOT << 4 | 1,
            BUFFER,
            4,
            END,
            END
        ]));
        assert_eq!(
            program("mpi_init_thread_"),
            [INT_AT, 0, END, INT_AT, 1, END]
        );
    }

    #[test]
    fn every_row_fits() {
        for row in functions() {
            let name = row.base;
            for name in [
                format!("MPI_{name}"),
                format!("mpi_{}_", name.to_lowercase()),
            ] {
                let function = Function::of(name.as_bytes()).unwrap();
                assert!(function.parameters().count() <= MOST_PARAMETERS, "{name}");
                let captured = function
                    .parameters()
                    .filter(|it| it.kind != Kind::Ignored)
                    .count();
                let Some(program) = capture(&function) else {
                    assert!(captured == 0 && function.meaning().is_local(), "{name}");
                    continue;
                };
                // These are learnt from besides.
                let learns = ["Comm_size", "Comm_rank", "Cart_create"].contains(&function.base);
                let more = usize::from(learns) + usize::from(tells_errors(&function));
                let captured = captured + more;
                // The program never ends early.
                assert_eq!(program.bytes().len(), 2 * captured + 2, "{name}");
            }
        }
    }
}
