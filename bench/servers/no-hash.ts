import { accessSync } from 'node:fs'
import { registerHooks } from 'node:module'

// Preloaded to leave out the cost of hashing passwords: a stub replaces lib/users/passwords.ts.

const MODULE = new URL('../../lib/users/passwords.ts', import.meta.url)
// Fails if the module was moved: the stub would replace nothing.
accessSync(MODULE)

/** The rest of the module is its own. */
const STUB = `
export * from '${MODULE.href}?own'
export function createPasswords () {
  return { hash: async () => 'saltsalt$2b$12$', verify: async () => true, isWeak: () => false, countWaiting: () => 0, countRest: () => Infinity, close: async () => {} }
}`

registerHooks({
  load (url, context, nextLoad) {
    return url === MODULE.href ? { format: 'module', source: STUB, shortCircuit: true } : nextLoad(url, context)
  }
})
