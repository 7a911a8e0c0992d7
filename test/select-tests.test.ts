import { t } from 'tap'
import { selectTests } from '../.ci/select-tests.ts'

const ROWS: Record<string, { path: string, includes: string[], only: RegExp }> = {
  'a test is itself': { path: 'test/lib/ids.test.ts', includes: ['test/lib/ids.test.ts'], only: /^test\/lib\/ids\.test\.ts$/ },
  'a folder of the code has the folder of the same name': { path: 'lib/users', includes: ['test/lib/users/rules.test.ts'], only: /^test\/lib\/users\// },
  'a folder of tests': { path: 'test/lib/users/', includes: ['test/lib/users/rules.test.ts'], only: /^test\/lib\/users\// },
  'a file has its own test, and those that import it': {
    path: 'lib/ids.ts', includes: ['test/lib/ids.test.ts', 'test/lib/events/order.test.ts'], only: /^test\/lib\/(ids|events\/order)\.test\.ts$|^test\/people\/outbox\.test\.ts$/
  },
  'a route also has those of the interface': { path: 'routes/user.ts', includes: ['test/spec/user.test.ts', 'test/spec/user-list.test.ts'], only: /^test\/spec\/user[.-]/ },
  'a helper has the tests that reach it through another helper': { path: 'test/helpers/mongo-database.ts', includes: ['test/spec/user.test.ts'], only: /^test\// },
  'a file without tests has those of its folder': { path: 'docs/api.md', includes: ['test/docs.test.ts', 'test/docs-shapes.test.ts'], only: /^test\/docs[.-]/ },
  'a file of the project has none': { path: 'package.json', includes: [], only: /^$/ }
}

for (const [name, { path, includes, only }] of Object.entries(ROWS)) {
  t.test(name, async (t) => {
    const tests = selectTests(path)
    for (const test of includes) t.ok(tests.includes(test), test)
    t.strictSame(tests.filter((test) => !only.test(test)), [])
    t.equal(new Set(tests).size, tests.length, 'each once')
  })
}
