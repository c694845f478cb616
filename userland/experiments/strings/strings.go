// strings: random strings of ten characters, drawn a character at a time, a string at a time, and a string at a time without bias.
//
// The first two are the functions of the article "Syscalls in Go". `strings HOW COUNT NAME` draws COUNT strings and prints how long that
// took as the line `rung NAME COUNT NANOSECONDS`; without a name it prints nothing. `strings bias` prints which of the two fast functions
// prefers some characters.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"
)

const characters = "1234567890abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ&*?()"

const length = 10

// Those characters that get one byte more than the rest if a remainder chooses them.
const preferred = 256 % len(characters)

func byCharacter() string {
	chosen := make([]byte, length)
	for i := range chosen {
		number, err := rand.Int(rand.Reader, big.NewInt(int64(len(characters))))
		if err != nil {
			log.Fatal(err)
		}
		chosen[i] = characters[number.Int64()]
	}
	return string(chosen)
}

func draw(bytes []byte) {
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
}

func byString() string {
	chosen := make([]byte, length)
	draw(chosen)
	for i, number := range chosen {
		chosen[i] = characters[int(number)%len(characters)]
	}
	return string(chosen)
}

// A string is a number below this: 67 to the power of 10, which fits ten times into 64 bits.
const numbers = 67 * 67 * 67 * 67 * 67 * 67 * 67 * 67 * 67 * 67

// One draw of eight bytes gives all ten characters; one in a hundred is drawn again, so that each string is as likely as any other.
func unbiased() string {
	const fair = math.MaxUint64 / numbers * numbers
	var drawn [8]byte
	number := uint64(math.MaxUint64)
	for number >= fair {
		draw(drawn[:])
		number = binary.LittleEndian.Uint64(drawn[:])
	}
	chosen := make([]byte, length)
	for i := range chosen {
		chosen[i] = characters[number%uint64(len(characters))]
		number /= uint64(len(characters))
	}
	return string(chosen)
}

var functions = map[string]func() string{
	"by-character": byCharacter,
	"by-string":    byString,
	"unbiased":     unbiased,
}

// How much more often one of the preferred characters comes than one of the others.
func preference(function func() string) float64 {
	var ofPreferred, ofOthers float64
	for i := 0; i < 20000; i++ {
		for _, character := range function() {
			if strings.IndexRune(characters, character) < preferred {
				ofPreferred++
			} else {
				ofOthers++
			}
		}
	}
	return ofPreferred / float64(preferred) / (ofOthers / float64(len(characters)-preferred))
}

func fact(name string, holds bool) {
	answer := "no"
	if holds {
		answer = "yes"
	}
	fmt.Println("fact", name, answer)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "bias" {
		// Four bytes of 256 against three: a third more.
		fact("by-string-prefers-some", preference(byString) > 1.2)
		fact("unbiased-prefers-some", preference(unbiased) > 1.1)
		return
	}
	if len(os.Args) < 3 || functions[os.Args[1]] == nil {
		log.Fatal("usage: strings by-character|by-string|unbiased COUNT [NAME], or: strings bias")
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	start := time.Now()
	for i := 0; i < count; i++ {
		functions[os.Args[1]]()
	}
	if len(os.Args) == 4 {
		fmt.Println("rung", os.Args[3], count, time.Since(start).Nanoseconds())
	}
}
