import t from 'tap'
import { createClient, toDatabaseName, toHosts } from '../../../../lib/store/mongo/client.ts'

t.test('a URL names a database and hosts', async (t) => {
  const cases: [url: string, database: string, hosts: string][] = [
    ['mongodb://localhost', 'identity', 'localhost'],
    ['mongodb://localhost/', 'identity', 'localhost'],
    ['mongodb://localhost:27018/?w=1', 'identity', 'localhost:27018'],
    ['mongodb://a:1,b:2,c/accounts?replicaSet=rs0', 'accounts', 'a:1,b:2,c'],
    ['mongodb+srv://user:p%40ss@cluster.example.com/my%20db', 'my db', 'cluster.example.com'],
    ['mongodb://user:pass@%2Ftmp%2Fmongodb.sock/x', 'x', '%2Ftmp%2Fmongodb.sock'],
    ['mongodb://host?appName=a/b@c', 'identity', 'host']
  ]
  for (const [url, database, hosts] of cases) {
    t.equal(toDatabaseName(url), database, url)
    t.equal(toHosts(url), hosts, url)
  }
})

t.test('a client has limits, and options in the URL take precedence', async (t) => {
  t.match(createClient('mongodb://localhost', 1_000).options, {
    maxPoolSize: 100,
    serverSelectionTimeoutMS: 900,
    connectTimeoutMS: 900,
    socketTimeoutMS: 900,
    waitQueueTimeoutMS: 900,
    retryReads: true,
    retryWrites: true
  })
  t.match(createClient('mongodb://localhost/?maxPoolSize=7&SocketTimeoutMS=5', 1_000, { appName: 'mine' }).options, {
    maxPoolSize: 7, socketTimeoutMS: 5, connectTimeoutMS: 900, appName: 'mine'
  })
})

t.test('the error for an invalid URL does not show its credentials', async (t) => {
  for (const url of [
    'mongodb://some/one:s3cret@host/',
    'mongodb://someone:s3/cret@host/',
    'mongodb://someone:s3@cret@host/',
    'mongodb://some:one:s3cret@host/',
    'mongodb://someone:s3%cret@host/',
    'mongodb://someone:s3cret@',
    'mongodb://someone:s3cret@host/?nonsense=1'
  ]) {
    const error = t.throws(() => createClient(url, 1_000), TypeError, url) as Error
    t.match(error.message, /^the MongoDB URL is invalid/)
    t.notMatch(`${error.stack} ${String(error.cause)}`, /s3|cret|some/, url)
  }
  t.throws(() => createClient('mongodb://host/?nonsense=1', 1_000), { message: /invalid: .*nonsense/ }, 'it shows what is not secret')
})
