package mpi

import "github.com/openimpi/impi/core/mpierr"

// classes has the sentinels of this package; those of the packages below are in
// mpierr.
var classes = []mpierr.Row{
	{Err: ErrInStatus, Class: mpierr.InStatus},
	{Err: ErrSpawn, Class: mpierr.Spawn},
	{Err: ErrTag, Class: mpierr.Tag},
	{Err: ErrRequest, Class: mpierr.Request},
	{Err: ErrMessage, Class: mpierr.Request},
	{Err: ErrArg, Class: mpierr.Arg},
	{Err: ErrErrhandler, Class: mpierr.Errhandler},
	{Err: mpierr.ErrCode, Class: mpierr.Arg},
	{Err: ErrBuffer, Class: mpierr.Buffer},
	{Err: ErrPending, Class: mpierr.Pending},
	{Err: ErrInfo, Class: mpierr.Info},
	{Err: ErrInfoKey, Class: mpierr.InfoKey},
	{Err: ErrInfoValue, Class: mpierr.InfoValue},
	{Err: ErrInfoNoKey, Class: mpierr.InfoNoKey},
	{Err: ErrElsewhere, Class: mpierr.Other},
	{Err: ErrForeign, Class: mpierr.UnsupportedOperation},
	{Err: ErrNotInitialized, Class: mpierr.Other},
	{Err: ErrFinalized, Class: mpierr.Other},
	{Err: ErrInitialized, Class: mpierr.Other},
	{Err: ErrNode, Class: mpierr.Other},
	{Err: ErrSignature, Class: mpierr.Type},
	{Err: ErrLauncher, Class: mpierr.Other},
	{Err: ErrJobOver, Class: mpierr.Other},
	{Err: ErrCall, Class: mpierr.Port},
	{Err: ErrUnreachable, Class: mpierr.ProcAborted},
	{Err: ErrAlone, Class: mpierr.Other},
	{Err: ErrJoin, Class: mpierr.Other},
	{Err: ErrService, Class: mpierr.Service},
	{Err: ErrName, Class: mpierr.Name},
	{Err: ErrNames, Class: mpierr.Other},
	{Err: ErrNamesDenied, Class: mpierr.Access},
	{Err: ErrPeerGone, Class: mpierr.ProcAborted},
}
