import { registerHooks } from 'node:module'
import type { Test } from 'tap'

const MOCKS = Symbol.for('fastify-identity/mocks')
const registry = ((globalThis as Record<symbol, unknown>)[MOCKS] ??= {}) as Record<string, object>
let count = 0

/**
 * Imports another copy of a module, in which these specifiers resolve to the given exports until the test ends.
 * tap's own `t.mockImport` works in tap's processes only, and a test also runs with plain `node`.
 */
export async function importMocked<T> (t: Test, module: URL, mocks: Record<string, object>): Promise<T> {
  const query = `?mocked=${count++}`
  const hooks = registerHooks({
    resolve (specifier, context, next) {
      const exports = context.parentURL?.endsWith(query) === true ? mocks[specifier] : undefined
      if (exports === undefined) return next(specifier, context)
      const url = `mocked:${specifier}${query}`
      registry[url] = exports
      return { url, format: 'module', shortCircuit: true }
    },
    load (url, context, next) {
      const exports = registry[url]
      if (exports === undefined) return next(url, context)
      const names = Object.keys(exports).filter((name) => name !== 'default' && !name.includes('.'))
      const mock = `globalThis[Symbol.for(${JSON.stringify(Symbol.keyFor(MOCKS))})][${JSON.stringify(url)}]`
      return { source: `export const { ${names.join(', ')} } = ${mock}`, format: 'module', shortCircuit: true }
    }
  })
  t.teardown(() => hooks.deregister())
  return await import(`${module.href}${query}`)
}
