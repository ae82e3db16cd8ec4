package memstore

import "math"

// An exact is an instant, or a length, of whole microseconds and so many Max-ths of one.
type exact struct{ at, part int64 }

// A stretch is the time from one instant up to another.
type stretch struct{ from, to exact }

// emission is how long units take to run out: exact, or rounded up.
func (m meter) emission(units int64) exact {
	window, most := float64(m.Window), float64(m.Max)
	product := window * float64(units)
	if math.Abs(product) > 1<<53 {
		return exact{at: int64(math.Ceil(window*(float64(units)/most))) + 1}
	}
	whole := int64(math.Floor(product / most))
	return exact{whole, m.Window*units - whole*m.Max}
}

func (e exact) plus(m meter, units int64) exact { return e.more(m, m.emission(units)) }

// more returns e + more.
func (e exact) more(m meter, more exact) exact {
	if e = (exact{e.at + more.at, e.part + more.part}); e.part >= m.Max {
		e = exact{e.at + 1, e.part - m.Max}
	}
	return e
}

func (e exact) minus(m meter, units int64) exact { return e.less(m, m.emission(units)) }

// less returns e - o.
func (e exact) less(m meter, o exact) exact {
	if e = (exact{e.at - o.at, e.part - o.part}); e.part < 0 {
		e = exact{e.at - 1, e.part + m.Max}
	}
	return e
}

// after reports whether e is later than o.
func (e exact) after(o exact) bool {
	return e.at > o.at || e.at == o.at && e.part > o.part
}

// orLater returns the later of two.
func (e exact) orLater(o exact) exact {
	if o.after(e) {
		return o
	}
	return e
}

// up returns the first whole microsecond that is not before e.
func (e exact) up() int64 {
	if e.part > 0 {
		return e.at + 1
	}
	return e.at
}

// behind returns the first instant that lies those units behind e.
func (e exact) behind(m meter, units float64) int64 {
	window, most := float64(m.Window), float64(m.Max)
	product := float64(window * units)
	if math.Abs(product) > 1<<53 {
		return e.at + int64(math.Ceil(window*(units/most))) + 1
	}
	return e.at + int64(math.Ceil((product+float64(e.part))/most))
}

// of returns an instant whose part may be of another Max.
func (e exact) of(m meter) exact { return exact{e.at, min(e.part, m.Max)} }

func (s stretch) of(m meter) stretch { return stretch{s.from.of(m), s.to.of(m)} }

// whole returns the whole microseconds of a stretch.
func (s stretch) whole() stretch { return stretch{exact{at: s.from.up()}, exact{at: s.to.at}} }
