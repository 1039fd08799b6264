package selftest

import "slices"

// Zoo lists all broken bridges, area by area.
func Zoo() []Mutant {
	return slices.Concat(listMutants, mappingMutants, schemaMutants, describeMutants, invokeMutants, invokeRequestMutants, generatedMutants,
		errorMutants, accessMutants, sessionMutants, broadMutants, httpMutants, translateMutants, filterMutants, freshMutants, upstreamMutants, loadMutants, perToolMutants, partlyMutants, mcpMutants, mcpCallerMutants)
}

// Find gives the mutant or the correct variant of a name.
func Find(name string) (Mutant, bool) {
	all := slices.Concat(Zoo(), Variants())
	if i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return Mutant{}, false
}
