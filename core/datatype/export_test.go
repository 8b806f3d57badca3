package datatype

// PackSize returns how many bytes Pack makes of count items.
func (t *Type) PackSize(count int) (int64, error) { return packSize(t, Native, count) }

// Large reports whether t's arguments are given as large counts: after WithLarge, or if
// they do not fit into C's int.
func (t *Type) Large() bool { return defOf(t).counted() }
