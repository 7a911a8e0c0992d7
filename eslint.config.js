import { readdirSync } from 'node:fs'
import neostandard from 'neostandard'

const FRONT = ['index', 'server', 'cli', 'config']

/**
 * The rooms of lib/ in their order: a room imports rooms before it, and the shared words, which are the other files of lib/. A file in
 * this list is no shared word, because it imports rooms.
 */
export const ROOMS = [
  'service-client', 'bridge', 'outbound', 'store', 'records', 'crypto', 'hashes', 'lists', 'work', 'throttling', 'notice.ts', 'events', 'base.ts', 'change-record.ts', 'browsers', 'sent-forms',
  'resources', 'pages', 'mail', 'logout', 'tokens', 'user-changes', 'client-documents', 'clients', 'tickets', 'ways', 'users', 'personal-tokens', 'accounts', 'webhooks', 'sessions', 'upstreams', 'sign-in',
  'import', 'lazy-migration', 'export', 'oidc', 'answers', 'console-sessions', 'remote',
  'bootstrap.ts', 'renderers.ts', 'maintenance', 'status', 'metrics', 'services.ts', 'sealed-store.ts', 'identity.ts'
]

for (const { name } of readdirSync(new URL('lib/', import.meta.url), { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
  if (!ROOMS.includes(name)) throw new Error(`eslint.config.js: lib/${name}/ needs its place in the order of ROOMS`)
}

/** Matches the specifiers of a room, or of a file at the top of a folder. */
const toRegex = (room) => room.endsWith('.ts') ? `^(\\.|(\\.\\./)*\\.\\.)/${room.replace('.', '\\.')}$` : `^\\.\\.?/(.*/)?${room}/`

/**
 * A wall: what files may not import.
 * @param {string[]} files the files that are held
 * @param {{ regex: string, message: string }[]} patterns specifiers
 * @param {{ name: string, message: string }[]} packages packages that belong elsewhere
 */
function wall (files, patterns, packages = []) {
  return { files, rules: { 'no-restricted-imports': ['error', { paths: packages, patterns }] } }
}

const OIDC_PROVIDER = { name: 'oidc-provider', message: 'Only lib/oidc/ imports oidc-provider.' }

/** Folders and files that a folder may not reach into: imports flow schemas <- lib <- plugins <- routes <- index, server, cli. */
function outside (folder, others) {
  return others.map((other) => ({
    regex: FRONT.includes(other) ? `^(\\.\\./)+${other}\\.ts$` : `^\\.\\.?/(.*/)?${other}/`,
    message: `${folder}/ does not import from ${other}: imports flow schemas <- lib <- plugins <- routes <- index, server, cli.`
  }))
}

/** The walls within lib/. Only the store reaches into its engines. */
function roomWalls () {
  const beyond = outside('lib', ['plugins', 'routes', 'testing', ...FRONT])
  const words = ROOMS.map((room) => ({
    regex: room === 'store' ? '^\\./store/(?!port\\.ts$)' : toRegex(room),
    message: `A shared word does not import from ${room}: it imports other shared words, and lib/store/port.ts.`
  }))
  return [
    wall(['lib/*.ts'], [...beyond, ...words], [...HTTP, OIDC_PROVIDER]),
    ...ROOMS.map((room, index) => wall([room.endsWith('.ts') ? `lib/${room}` : `lib/${room}/**/*.ts`], [
      ...beyond,
      ...(room === 'store' ? [] : [ENGINES]),
      ...ROOMS.slice(index + 1).map((later) => ({ regex: toRegex(later), message: `lib/${room} does not import from ${later}, which comes after it in ROOMS (eslint.config.js).` }))
    ], room === 'oidc' ? HTTP : [...HTTP, OIDC_PROVIDER]))
  ]
}

const ENGINES = { regex: '^\\.\\.?/(.*/)?store/(sqlite|mongo)/', message: 'An engine is imported by lib/store/ only.' }

const HTTP = ['fastify', 'fastify-plugin', '@fastify/sensible', '@fastify/swagger', '@fastify/rate-limit']
  .map((name) => ({ name, message: 'lib/ and schemas/ know no Fastify and no HTTP server.' }))

/** The one writer of users by rules, and the files whose writes no such rule concerns. */
const USER_WRITERS = [
  'lib/user-changes/user-changes.ts',
  'lib/users/password-checks.ts', // a new hash of the same password
  'lib/accounts/language.ts', // the language of later mails
  'lib/user-changes/administrators.ts', // the revision alone
  'lib/bootstrap.ts' // the slot of the first administrator
]

const WRITE = 'CallExpression[callee.property.name=/^(update|put|delete|deleteMany)$/]'

/** Writes of the collection of users, under the names that it has in this repository. */
const USER_WRITES = [
  `${WRITE}[callee.object.name='users']`,
  `${WRITE}[callee.object.arguments.0.value='users']`,
  `Program:has(VariableDeclarator[id.name='records'][init.arguments.0.value='users']) ${WRITE}[callee.object.name='records']`
]

const PRODUCT = ['{lib,plugins,routes,cli,schemas,testing}/**/*.ts', '*.ts']

/** Files of texts, where a line is a sentence or a list of words. */
const TEXTS = ['lib/pages/texts/**', 'lib/mail/texts/**', 'lib/users/common-passwords.ts', 'cli/texts.ts']

/** A line with a text of 80 characters or more, or with a description. */
const LONG_TEXT = /'[^']{80,}'|`[^`]{80,}`|description: /

export default [
  ...neostandard({ ts: true, ignores: ['dist', '.tap', '.stryker-tmp', 'bench/node_modules', 'examples/*/node_modules'] }),
  wall(['schemas/**/*.ts'], outside('schemas', ['lib', 'plugins', 'routes', 'testing', ...FRONT]), HTTP),
  ...roomWalls(),
  wall(['plugins/**/*.ts'], [ENGINES, ...outside('plugins', ['routes', 'testing', ...FRONT])], [OIDC_PROVIDER]),
  wall(['routes/**/*.ts'], [ENGINES, ...outside('routes', ['testing', ...FRONT])], [OIDC_PROVIDER]),
  wall(['cli/**/*.ts', 'testing/**/*.ts'], [ENGINES], [OIDC_PROVIDER]),
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
  },
  {
    // What is over these bounds is counted in eslint-suppressions.json. A count that is too high fails as well: it only shrinks.
    files: PRODUCT,
    ignores: TEXTS,
    rules: {
      '@stylistic/max-len': ['error', { code: 160, ignorePattern: LONG_TEXT.source }],
      'max-lines-per-function': ['error', { max: 120, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/no-non-null-assertion': 'error'
    }
  },
  {
    // Each room is opened with rooms that are open already.
    files: ['lib/identity.ts'],
    rules: {
      '@typescript-eslint/no-use-before-define': ['error', { functions: true, variables: true }]
    }
  },
  {
    files: ['lib/**/*.ts'],
    ignores: USER_WRITERS,
    rules: {
      'no-restricted-syntax': ['error', ...USER_WRITES.map((selector) => ({
        selector, message: 'Change a user by changeUser (lib/user-changes/user-changes.ts), or patch and ways.change, and delete them by removeUser: what every change does would be left out.'
      })), {
        selector: "CallExpression[callee.property.name='getLinked'] > ObjectExpression", message: 'Name the links in a constant of the module: a store plans a look-up once for each object.'
      }]
    }
  },
  {
    files: ['plugins/**/*.ts', 'routes/**/*.ts', 'cli/**/*.ts', ...FRONT.map((name) => `${name}.ts`)],
    ignores: ['cli/move.ts'], // has two stores, and no services
    rules: {
      'no-restricted-syntax': ['error', {
        selector: "CallExpression[callee.property.name='collection']", message: 'Only lib/ reads and writes records: call a service (lib/services.ts), and show its views.'
      }]
    }
  },
  {
    // The files of tsconfig.json.
    files: ['**/*.ts'],
    ignores: ['bench/**', 'examples/**', 'test/clients/document/**'],
    languageOptions: { parserOptions: { project: 'tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      'no-void': ['error', { allowAsStatement: true }],
      // tap itself waits for a subtest.
      '@typescript-eslint/no-floating-promises': ['error', { allowForKnownSafePromises: [{ from: 'package', package: '@tapjs/core', name: 'PromiseWithSubtest' }] }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error'
    }
  }
]
