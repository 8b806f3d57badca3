package mpi

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// noBadCall are the exported functions that have no wrong arguments, and why.
var noBadCall = map[string]string{
	"Init": "no argument; twice: TestHandlerOfOtherCalls", "Finalize": "no argument; calls after it: TestAfterFinalize",
	"Barrier": "no argument", "Ibarrier": "no argument", "BufferDetach": "nothing attached is no error", "BufferFlush": "the same", "BufferIflush": "the same",
	"AddErrorClass": "no argument", "CreateKeyval": "no function is the null one", "CreateTypeKeyval": "the same", "CreateWinKeyval": "the same",
	"NullCopy": "a callback", "DupCopy": "a callback", "NullDelete": "a callback", "NewError": "gives an error, and has none",
	"GrequestStart": "no function is none to call; before Init: TestGrequestNeedsInit", "Join": "for simulators", "NewRoster": "for simulators", "Roster.Join": "for simulators", "Proc.FindParents": "for simulators", "Proc.OnBoard": "for simulators", "Proc.LendMemory": "for simulators",
	"Proc.OpenPort": "TestConnectFails", "Proc.ClosePort": "the same", "OpenPort": "as Proc.OpenPort", "ClosePort": "the same",
	"CommJoin": "as Proc.CommJoin", "Proc.CommJoin": "TestCommJoinBadDescriptors",
	"Proc.PublishName": "TestBadNames", "Proc.UnpublishName": "the same", "Proc.LookupName": "the same",
	"PublishName": "as Proc.PublishName; before Init: TestNamesNeedInit", "UnpublishName": "the same", "LookupName": "the same",
	"SendBuffer.Detach": "nothing attached is no error", "SendBuffer.Flush": "the same", "NewSendBuffer": "no argument; before Init: as GrequestStart",
	"FileDelete": "TestFileErrors", "RegisterDatarep": "TestFileDatarep", "ControlVariable.Read": "TestControlVariables", "ControlVariable.Write": "TestControlVariables",
	"Measure":           "no argument; before Init: as GrequestStart",
	"Proc.BufferAttach": "as BufferAttach", "Proc.BufferDetach": "as BufferDetach", "Proc.Finalize": "as Finalize",
	"Win.CallErrhandler": "TestMethodsOfFreed", "Win.Check": "TestMethodsOfFreed", "Win.GetErrhandler": "TestMethodsOfFreed", "Win.GetInfo": "TestMethodsOfFreed",
	"Win.Group": "TestMethodsOfFreed", "Win.SetName": "TestMethodsOfFreed", "Win.Sync": "TestMethodsOfFreed",
}

// Every exported function and method that can fail is called by a row of the tables
// of bad calls, which have its error's class.
func TestEveryFunctionHasABadCall(t *testing.T) {
	called := badCallees(t)
	for _, name := range slices.Sorted(maps.Keys(parameters(t))) {
		switch receiver, _, method := strings.Cut(name, "."); {
		case method && (receiver == "Comm" || !ast.IsExported(receiver)): // TestEveryArgumentOfComm, TestMethodsOfNoCommunicator
		case method && receiver == "File": // TestMethodsOfNoFile, TestFileErrors
		case called[name] == (noBadCall[name] != ""):
			t.Errorf("%s: no table of bad calls has it, or noBadCall has it, too", name)
		}
	}
}

// badCallees are the functions and methods that rows call: those of function
// literals with a badThings or badWindow.
func badCallees(t *testing.T) map[string]bool {
	t.Helper()
	files := sources(t, true)
	fields, called := map[string]string{}, map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && thing(s.Name.Name) {
				for _, f := range s.Type.(*ast.StructType).Fields.List {
					for _, name := range f.Names {
						fields[s.Name.Name+"."+name.Name] = strings.TrimPrefix(types.ExprString(f.Type), "*")
					}
				}
			}
			return true
		})
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncLit); ok && len(f.Type.Params.List) == 1 {
				if what := strings.TrimPrefix(types.ExprString(f.Type.Params.List[0].Type), "*"); thing(what) {
					callees(f, what, fields, called)
				}
			}
			return true
		})
	}
	return called
}

func thing(name string) bool { return name == "badThings" || name == "badWindow" }

// callees notes what a row calls: Function, or Type.Method of a field of its
// parameter, or of a variable that is a copy of one.
func callees(f *ast.FuncLit, what string, fields map[string]string, called map[string]bool) {
	typeOf := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return fields[what+"."+e.Sel.Name]
		case *ast.Ident: // q := x.done
			if e.Obj != nil {
				if a, ok := e.Obj.Decl.(*ast.AssignStmt); ok {
					if s, ok := a.Rhs[0].(*ast.SelectorExpr); ok {
						return fields[what+"."+s.Sel.Name]
					}
				}
			}
		}
		return ""
	}
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := c.Fun
		if i, ok := fun.(*ast.IndexExpr); ok { // Mrecv[byte]
			fun = i.X
		}
		switch fun := fun.(type) {
		case *ast.Ident:
			called[fun.Name] = true
		case *ast.SelectorExpr:
			if of := typeOf(fun.X); of != "" {
				called[of+"."+fun.Sel.Name] = true
			}
		}
		return true
	})
}
