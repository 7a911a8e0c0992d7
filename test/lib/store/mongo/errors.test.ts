import t from 'tap'
import { paramError } from '../../../../lib/errors.ts'
import { toPortError } from '../../../../lib/store/mongo/errors.ts'
import { DuplicateKeyError } from '../../../../lib/store/port.ts'

t.test('a duplicate key error names the field, in the form of each server', async (t) => {
  const mongod = 'E11000 duplicate key error collection: identity.users index: account_1 dup key: { account: "index: x_1" }'
  const cases: [name: string, error: object, unique: string[] | undefined, field: string][] = [
    ['mongod', { code: 11000, message: mongod, keyPattern: { account: 1 } }, undefined, 'account'],
    ['mongod, the id', { code: 11000, message: mongod, keyPattern: { _id: 1 } }, undefined, 'id'],
    ['mongod without a keyPattern', { code: 11000, message: mongod }, undefined, 'account'],
    ['FerretDB', { code: 11000, message: "Duplicate key violation on the requested collection: Index 'account_1'" }, undefined, 'account'],
    ['FerretDB, the id', { code: 11000, message: "Duplicate key violation on the requested collection: Index '_id_'" }, undefined, 'id'],
    ['a name with an underscore', { code: 11000, message: "Index 'user_code_1'" }, undefined, 'user_code'],
    ['a name with a dot', { code: 11000, message: "Index 'a%2Eb_1'" }, undefined, 'a.b'],
    ["FerretDB's findAndModify", { code: 1, message: 'conflicting key value violates exclusion constraint "documents_rum_index_3"' }, ['account'], 'account']
  ]
  for (const [name, error, unique, field] of cases) {
    const seen = toPortError(Object.assign(new Error(), error), unique)
    t.ok(seen instanceof DuplicateKeyError, name)
    t.match(seen, { field, message: `duplicate value of ${field}` }, name)
    t.notOk('cause' in seen, `${name}: the duplicate value is not passed on`)
  }
})

t.test('any other failure is ErrDb with its cause', async (t) => {
  for (const [cause, unique] of [
    [new Error('connect ECONNREFUSED')],
    [Object.assign(new Error('not primary'), { code: 10107 })],
    [Object.assign(new Error('duplicate, but of what'), { code: 11000 })],
    [Object.assign(new Error('value violates exclusion constraint "x"'), { code: 1 }), ['account', 'bootstrap']],
    [Object.assign(new Error('out of memory'), { code: 1 }), ['account']]
  ] as [Error, string[] | undefined][]) {
    const seen = toPortError(cause, unique)
    t.match(seen, { code: 'ErrDb', statusCode: 503, message: 'the store is unavailable' })
    t.equal(seen.cause, cause)
  }
})

t.test('errors of the port pass through', async (t) => {
  const error = paramError('sort', 'unknown key')
  t.equal(toPortError(error), error)
})
