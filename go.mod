module rocketd

go 1.26.0
