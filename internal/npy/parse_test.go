package npy

import "bytes"

// Parse decodes the bytes of a .npy file.
func Parse(data []byte) (*Array, error) {
	return read(bytes.NewReader(data), uint64(len(data)), "", nil)
}

// ParseZip decodes the bytes of an .npz file.
func ParseZip(data []byte) ([]Member, error) {
	return readZip(bytes.NewReader(data), int64(len(data)), nil)
}
