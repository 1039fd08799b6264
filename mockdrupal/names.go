package mockdrupal

import (
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/proxy"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Names that moved to other packages, until their users follow.
const (
	FaultBoth        = fault.Both
	FaultClose       = fault.Close
	FaultCut         = fault.Cut
	FaultDeaf        = fault.Deaf
	FaultDelay       = fault.Delay
	FaultEmpty       = fault.Empty
	FaultGarbage     = fault.Garbage
	FaultHTML        = fault.HTML
	FaultHang        = fault.Hang
	FaultHangBody    = fault.HangBody
	FaultHuge        = fault.Huge
	FaultInvalidUTF8 = fault.InvalidUTF8
	FaultLengthLong  = fault.LengthLong
	FaultLengthShort = fault.LengthShort
	FaultMissingID   = fault.MissingID
	FaultNeither     = fault.Neither
	FaultNullID      = fault.NullID
	FaultRedirect    = fault.Redirect
	FaultRefuse      = fault.Refuse
	FaultRemoteRef   = fault.RemoteRef
	FaultReset       = fault.Reset
	FaultStatus      = fault.Status
	FaultTrailing    = fault.Trailing
	FaultWrongID     = fault.WrongID
	RouteJSONRPC     = route.JSONRPC
	RouteMethods     = route.Methods
	QuirkStickyGet   = quirk.StickyGet
	ControlPrefix    = control.Prefix
)

type (
	Face         = Extension
	Proxy        = proxy.Proxy
	ProxyOptions = proxy.Options
)

var (
	Quirks         = quirk.All
	NewProxy       = proxy.New
	CredentialName = proxy.CallerName
)
