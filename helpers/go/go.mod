module kcluster

go 1.22
