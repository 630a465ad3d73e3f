package schedule

import "slices"

// smallMap is a map for where most have a few keys, of which there are as many as rOperators: to look at each of a few
// takes less time and memory than a map. The zero value is empty.
type smallMap[K comparable, V any] struct {
	keys   []K
	values []V
	index  map[K]int // of keys and values; nil while there are few
}

const fewKeys = 8

func (m *smallMap[K, V]) get(k K) (v V, ok bool) {
	i, ok := m.index[k]
	if m.index == nil {
		i = slices.Index(m.keys, k)
		ok = i >= 0
	}
	if !ok {
		return v, false
	}
	return m.values[i], true
}

// set adds a key that the map does not have.
func (m *smallMap[K, V]) set(k K, v V) {
	m.keys, m.values = append(m.keys, k), append(m.values, v)
	if m.index == nil && len(m.keys) > fewKeys {
		m.index = make(map[K]int, 2*len(m.keys))
		for i, k := range m.keys {
			m.index[k] = i
		}
	} else if m.index != nil {
		m.index[k] = len(m.keys) - 1
	}
}
