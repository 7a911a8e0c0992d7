import neostandard from 'neostandard'

const FRONT = ['index', 'server', 'cli', 'config']

/**
 * The walls of the house: imports flow schemas <- lib <- plugins <- routes <- index, server, cli.
 * @param {string} folder the folder that is held
 * @param {string[]} rooms folders and files it may not reach into
 * @param {{ name: string, message: string }[]} packages packages that belong elsewhere
 */
function wall (folder, rooms, packages = []) {
  return {
    files: [`${folder}/**/*.ts`],
    rules: {
      'no-restricted-imports': ['error', {
        paths: packages,
        patterns: rooms.map((room) => ({
          regex: FRONT.includes(room) ? `^(\\.\\./)+${room}\\.ts$` : `^\\.\\.?/(.*/)?${room}/`,
          message: `${folder}/ does not import from ${room}: imports flow schemas <- lib <- plugins <- routes <- index, server, cli.`
        }))
      }]
    }
  }
}

const HTTP = ['fastify', 'fastify-plugin', '@fastify/sensible', '@fastify/swagger', '@fastify/rate-limit']
  .map((name) => ({ name, message: 'lib/ and schemas/ know no Fastify and no HTTP server.' }))

export default [
  ...neostandard({ ts: true, ignores: ['dist', '.tap', '.stryker-tmp', 'bench/node_modules', 'examples/*/node_modules'] }),
  wall('schemas', ['lib', 'plugins', 'routes', 'testing', ...FRONT], HTTP),
  wall('lib', ['plugins', 'routes', 'testing', ...FRONT], HTTP),
  wall('plugins', ['routes', 'testing', ...FRONT]),
  wall('routes', ['testing', ...FRONT]),
  {
    files: ['**/*.ts'],
    rules: {
      // A module that is wanted for its types only is not loaded: type stripping leaves `import {}` behind, which is.
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      // Names that go over the wire or into the store are snake_case (RFC 6749, docs/api.md).
      camelcase: 'off'
    }
  }
]
