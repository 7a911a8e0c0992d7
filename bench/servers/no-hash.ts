import { registerHooks } from 'node:module'

// Preloaded where the cost of hashing a password shall be left aside: lib/users/passwords.ts becomes a stub. All else is as it is.

const STUB = `
export function createPasswords () {
  return { hash: async () => 'saltsalt$2b$12$', verify: async () => true, isWeak: () => false, close: async () => {} }
}`

registerHooks({
  load (url, context, nextLoad) {
    return url.endsWith('/lib/passwords.ts') ? { format: 'module', source: STUB, shortCircuit: true } : nextLoad(url, context)
  }
})
