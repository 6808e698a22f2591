//! A communicator: where it comes from, and who is in it.

/// A communicator, as an index into [`Communicators::all`](super::Communicators::all).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunicatorId(pub u32);

/// Where a communicator comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// `MPI_COMM_WORLD` of a job.
    World,
    /// `MPI_COMM_SELF` of a process.
    Own,
    /// `MPI_Comm_dup` and its kin.
    Copy,
    /// `MPI_Comm_split`.
    Split,
    /// `MPI_Comm_split_type`.
    SplitType,
    /// `MPI_Comm_create`, `MPI_Comm_create_group`.
    Create,
    /// `MPI_Cart_create`, `MPI_Cart_sub`, `MPI_Graph_create`, `MPI_Dist_graph_create` and its kin.
    Topology,
    /// `MPI_Intercomm_create`.
    Intercommunicator,
    /// `MPI_Intercomm_merge`.
    Merge,
}

/// The members of a communicator, or of one side of an intercommunicator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    /// How many there are, if known.
    pub size: Option<u32>,
    /// World ranks by rank, as far as known.
    pub ranks: Vec<Option<u32>>,
}

/// A communicator of a run: the same one in all its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// Its index.
    pub id: CommunicatorId,
    /// Where it comes from.
    pub origin: Origin,
    /// What it was made of.
    pub parent: Option<CommunicatorId>,
    /// Its members; of an intercommunicator both sides.
    pub sides: Vec<Members>,
}

impl Members {
    pub(super) fn of(ranks: impl IntoIterator<Item = Option<u32>>) -> Self {
        let ranks: Vec<Option<u32>> = ranks.into_iter().collect();
        Self {
            size: Some(ranks.len() as u32),
            ranks,
        }
    }

    /// The rank here of this rank of the world.
    #[must_use]
    pub fn position(&self, world: u32) -> Option<usize> {
        // Mostly it is the world itself.
        if self.ranks.get(world as usize) == Some(&Some(world)) {
            return Some(world as usize);
        }
        self.ranks.iter().position(|rank| *rank == Some(world))
    }

    pub(super) fn followed_by(&self, other: &Self) -> Self {
        match (self.size, other.size) {
            (Some(_), Some(_)) => Self::of(self.ranks.iter().chain(&other.ranks).copied()),
            _ => Self::default(),
        }
    }
}

impl Communicator {
    /// Who a caller on `side` can name.
    pub(super) fn named_from(&self, side: usize) -> Option<&Members> {
        let side = match self.sides.len() {
            2 => 1 - side,
            _ => side,
        };
        self.sides.get(side)
    }

    /// Who rank `rank` is for a caller on `side`.
    pub(super) fn world_rank(&self, side: usize, rank: i64) -> Option<u32> {
        if self.origin == Origin::World {
            let rank = u32::try_from(rank).ok()?;
            let size = self.sides.first()?.size;
            return size.is_none_or(|size| rank < size).then_some(rank);
        }
        let rank = usize::try_from(rank).ok()?;
        self.named_from(side)?.ranks.get(rank).copied().flatten()
    }
}
