//! What ranks of Open MPI have beside their events, for generated ones: arguments with the addresses that calls return to and
//! those of the library's objects, which the system puts elsewhere in each process.

use anyhow::Result;
use lockstep_writer::{Builder, FunctionNumber};

/// Names of the functions of `generate::rank_events`.
pub const NAMES: [&str; 11] = [
    "main",
    "MPI_Init",
    "step",
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Bsend",
    "MPI_Rsend",
    "smooth",
    "report",
    "MPI_Allreduce",
    "MPI_Finalize",
];

/// As many as Open MPI 4.1 predefines.
const HANDLES: usize = 141;
/// Bytes from one of its objects to the next.
const OBJECT: u64 = 0x200;

/// A rank, and where its program and its library lie.
pub struct Places {
    rank: i64,
    /// Ranks in a row of the grid.
    side: i64,
    program: u64,
    library: u64,
}

impl Places {
    pub fn new(rank: u32, count: u32) -> Self {
        let side = (1..).find(|side| side * side >= count).unwrap_or(1);
        // 28 bits of a page's number, as Linux draws them.
        let drawn = |salt: u64| {
            let mixed = (u64::from(rank) << 1 | salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed >> 36 << 12
        };
        Self {
            rank: i64::from(rank),
            side: i64::from(side),
            program: 0x5500_0000_0000 + drawn(0),
            library: 0x7f00_0000_0000 + drawn(1),
        }
    }

    fn object(&self, index: usize) -> u64 {
        self.library + OBJECT * index as u64
    }

    /// Tells the handles of a process.
    pub fn handles(&self, builder: &mut Builder, process: usize) {
        let known = ["comm_world", "double", "op_sum"].map(str::to_owned);
        let others = (known.len()..HANDLES).map(|index| format!("object_{index}"));
        for (index, name) in known.into_iter().chain(others).enumerate() {
            builder.handle(process, &format!("ompi_mpi_{name}"), self.object(index));
        }
    }

    /// Tells the arguments of a call of a function by its index in [`NAMES`], if it is one of MPI.
    pub fn call(&self, builder: &mut Builder, index: u32, function: FunctionNumber) -> Result<()> {
        let behind = (self.program + 0x1000 + 0x20 * u64::from(index)) as i64;
        let [world, double, sum] = [0, 1, 2].map(|object| self.object(object) as i64);
        let send = |peer| vec![behind, 512, double, peer, 7, world];
        let values = match index {
            1 | 10 => vec![behind],
            3 => send(self.rank - self.side),
            4 => send(self.rank + self.side),
            5 => send(self.rank - 1),
            6 => send(self.rank + 1),
            9 => vec![behind, 1, double, sum, world],
            _ => return Ok(()),
        };
        Ok(builder.arguments(function, false, &values)?)
    }
}
