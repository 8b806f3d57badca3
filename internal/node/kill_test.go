package node

func nodeMain() {}
