#!/usr/bin/env node
/**
 * The operator's command line. It opens the store itself, so it works with and without a running service.
 *
 * This file first says what is missing, so it imports nothing before, and has only syntax that old releases of Node read: no
 * top-level await, for example.
 * @module
 */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

function fail (message: string): void {
  process.stderr.write(`fastify-identity: ${message}\n`)
  process.exitCode = 1
}

/** Whether Fastify, a peer dependency, is installed where this package finds it. */
function hasFastify (): boolean {
  try {
    import.meta.resolve('fastify')
    return true
  } catch {
    return false
  }
}

/** A command reports its own failures, so this one is a fault of the program. */
function crash (error: unknown): void {
  console.error(error)
  process.exit(1)
}

if (major < 24 || (major === 24 && minor < 7)) fail(`needs Node 24.7 or later, and this is Node ${process.versions.node}`)
else if (!hasFastify()) fail('Fastify is not installed beside this package: run `npm install fastify@5`')
else import('./cli/run.ts').then(({ run }) => run()).catch(crash)
