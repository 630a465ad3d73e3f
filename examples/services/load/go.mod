module load

go 1.25
