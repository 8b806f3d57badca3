package agree

// tree says who is whose parent, by which members have failed. The members of a site are a heap by
// their ranks; the lowest living one of a site is its leader, whose parent is the lowest living
// member of all, the root.
type tree struct {
	fan   int
	sites [][]int // members of each site, by rank
	site  []int   // site of each member
	place []int   // index of each member in its site
}

// newTree makes the tree of a group of which the site of each member is known.
func newTree(site []int, fan int) *tree {
	t := &tree{fan: fan, site: make([]int, len(site)), place: make([]int, len(site))}
	number := make(map[int]int)
	for rank, name := range site {
		s, known := number[name]
		if !known {
			s = len(t.sites)
			number[name] = s
			t.sites = append(t.sites, nil)
		}
		t.site[rank], t.place[rank] = s, len(t.sites[s])
		t.sites[s] = append(t.sites[s], rank)
	}
	return t
}

// parent returns the parent of a member, which is itself if it is the root.
func (t *tree) parent(rank int, failed Set) int {
	members := t.sites[t.site[rank]]
	for i := t.place[rank]; i > 0; {
		i = (i - 1) / t.fan
		if !failed.Has(members[i]) {
			return members[i]
		}
	}
	if leader := t.leader(t.site[rank], failed); leader != rank {
		return leader
	}
	return failed.firstNot()
}

// leader returns the lowest living member of a site, or -1.
func (t *tree) leader(site int, failed Set) int {
	for _, rank := range t.sites[site] {
		if !failed.Has(rank) {
			return rank
		}
	}
	return -1
}

func (t *tree) children(rank int, failed Set) (list []int) {
	list = t.below(list, t.site[rank], t.place[rank], failed)
	if t.leader(t.site[rank], failed) != rank {
		return list
	}
	if top := t.sites[t.site[rank]][0]; top != rank { // the first member of the site has failed
		for _, orphan := range t.below(nil, t.site[rank], 0, failed) {
			if orphan != rank {
				list = append(list, orphan)
			}
		}
	}
	if failed.firstNot() != rank {
		return list
	}
	for site := range t.sites {
		if leader := t.leader(site, failed); leader >= 0 && site != t.site[rank] {
			list = append(list, leader)
		}
	}
	return list
}

// below adds the living members whose nearest living ancestor is at a place.
func (t *tree) below(list []int, site, place int, failed Set) []int {
	members := t.sites[site]
	for i := place*t.fan + 1; i <= place*t.fan+t.fan && i < len(members); i++ {
		if failed.Has(members[i]) {
			list = t.below(list, site, i, failed)
		} else {
			list = append(list, members[i])
		}
	}
	return list
}
