// The health check of the service mongo in docker-compose.yml. At the first start it makes a
// replica set of one, then the users root and oauth; after that it only looks. Healthy means
// that the server accepts writes and has both users.
const fs = require("fs");
const secret = (name) => fs.readFileSync(`/run/secrets/${name}`, "utf8");
const admin = db.getSiblingDB("admin");

if (!db.hello().setName) {
  rs.initiate({ _id: "rs0", members: [{ _id: 0, host: "mongo:27017" }] });
  quit(1);
}
if (!db.hello().isWritablePrimary) {
  quit(1);
}
try {
  admin.auth("root", secret("root"));
} catch (e) {
  // While there is no user, localhost may create the first one. Later this fails as well.
  admin.createUser({ user: "root", pwd: secret("root"), roles: ["root"] });
  admin.auth("root", secret("root"));
}
if (!admin.getUser("oauth")) {
  // What docs/deployment.md says of `serve` and `migrate up`, on this database only.
  const roles = ["readWrite", "dbAdmin"].map((role) => ({ role, db: "oauth" }));
  admin.createUser({ user: "oauth", pwd: secret("oauth"), roles });
}
