module alea/experiments/strings

go 1.21
