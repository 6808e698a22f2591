module zoo121

go 1.21
