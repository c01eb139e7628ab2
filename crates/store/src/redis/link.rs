//! One connection to a Redis, whatever stands behind it, made again when it breaks.
//!
//! All calls of a store go over one connection side by side, those that wait for replicas over another. A call whose answer did not come is made again on a new
//! connection while there is patience left: whether the first one was heard is not known, so every script of this store
//! may be run twice with the outcome of once, and who asked is told that it was.

use super::address::{RedisAddress, RedisTopology, lively};
use super::scripts::{RedisCall, ScriptFailure, fate, invalid};
use crate::server_calls::CallRuntime;
use crate::{Error, Result};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisFuture, RedisResult, TlsMode, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// How long is waited before a call is made again.
const PAUSE: Duration = Duration::from_millis(25);
/// By how much the wire is more patient than the link, so that the link says what happened.
const SLACK: Duration = Duration::from_millis(500);

/// The way to the server.
pub(super) struct RedisLink {
    pub(super) wire: CallRuntime,
    pub(super) address: RedisAddress,
    door: Door,
    open: Slot,
    /// For what waits for replicas: nothing else is heard on a connection meanwhile.
    waiting: Slot,
    pub(super) patience: Duration,
}

/// A place for a connection.
type Slot = Mutex<Option<Line>>;

/// How connections are made.
enum Door {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
    Sentinel(Box<Mutex<SentinelClient>>),
}

/// A connection.
#[derive(Clone)]
enum Line {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Line {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(line) => line.req_packed_command(cmd),
            Self::Cluster(line) => line.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(line) => line.req_packed_commands(pipeline, offset, count),
            Self::Cluster(line) => line.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(line) => line.get_db(),
            Self::Cluster(line) => line.get_db(),
        }
    }
}

/// What came of a call.
pub(super) struct RedisAnswer {
    pub(super) value: Value,
    /// True when the call was made more than once: the first may have been heard.
    pub(super) was_repeated: bool,
}

impl RedisLink {
    /// Prepares the connection; the server is not spoken to yet.
    pub(super) fn new(address: RedisAddress, patience: Duration) -> Result<Arc<Self>> {
        let place = address.place();
        let door = door(&address, patience).map_err(|e| invalid(&e))?;
        let wire = CallRuntime::new(place, patience)?;
        Ok(Arc::new(Self { wire, address, door, open: Slot::default(), waiting: Slot::default(), patience }))
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.address.sort == RedisTopology::Cluster
    }

    /// How many connections there are to ask on.
    pub(super) fn connections(&self) -> u64 {
        // One that is locked just now is being made.
        let is_there = |slot: &Slot| slot.try_lock().map_or(true, |line| line.is_some());
        u64::from(is_there(&self.open)) + u64::from(is_there(&self.waiting))
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(self: &Arc<Self>, ask: RedisCall) -> Result<RedisAnswer> {
        self.ask_for(self.patience, ask)
    }

    /// The same with another patience.
    pub(super) fn ask_for(self: &Arc<Self>, patience: Duration, ask: RedisCall) -> Result<RedisAnswer> {
        let link = Arc::clone(self);
        self.wire.call_for(patience + SLACK, async move { link.answer(&ask, patience).await })
    }

    /// Asks several things at once; the answers come in the order of the questions.
    pub(super) fn ask_all(self: &Arc<Self>, asks: Vec<RedisCall>) -> Result<Vec<Value>> {
        let (link, patience) = (Arc::clone(self), self.patience);
        self.wire.call_for(patience + SLACK, async move {
            let mut values = vec![Value::Nil; asks.len()];
            let mut running = JoinSet::new();
            for (i, ask) in asks.into_iter().enumerate() {
                let link = Arc::clone(&link);
                running.spawn(async move { (i, link.answer(&ask, patience).await) });
            }
            while let Some(done) = running.join_next().await {
                let (i, answer) = done.map_err(|e| Error::away(link.wire.place(), e.to_string()))?;
                values[i] = answer?.value;
            }
            Ok(values)
        })
    }

    /// Asks until there is an answer, a refusal or no more patience.
    pub(super) async fn answer(&self, ask: &RedisCall, patience: Duration) -> Result<RedisAnswer> {
        let (start, mut was_repeated) = (Instant::now(), false);
        loop {
            let left = patience.saturating_sub(start.elapsed());
            let tried = tokio::time::timeout(left, self.once(ask)).await;
            let why = match tried {
                Ok(Ok(value)) => return Ok(RedisAnswer { value, was_repeated }),
                Ok(Err(error)) => match fate(self.wire.place(), &error) {
                    ScriptFailure::Refused(error) => return Err(error),
                    ScriptFailure::Again { why, is_broken } => {
                        if is_broken {
                            self.hang_up(ask).await;
                        }
                        why
                    }
                },
                Err(_) => {
                    self.hang_up(ask).await;
                    format!("no answer within {} s", patience.as_secs_f32())
                }
            };
            let is_hopeless = ask.is_greeting && !why.contains("LOADING");
            if is_hopeless || start.elapsed() + PAUSE >= patience {
                return Err(Error::away(self.wire.place(), why));
            }
            was_repeated = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn once(&self, ask: &RedisCall) -> RedisResult<Value> {
        let mut line = self.line(ask).await?;
        let value = ask.put(&mut line).await?;
        if self.waits(ask) {
            self.spread(&mut line).await?;
        }
        Ok(value)
    }

    /// Waits until enough replicas have what was written on this connection.
    async fn spread(&self, line: &mut Line) -> RedisResult<()> {
        let (wanted, half) = (self.address.wait, self.patience / 2);
        let reached: u32 =
            redis::cmd("WAIT").arg(wanted).arg(half.as_millis() as u64).query_async(line).await?;
        if reached >= wanted {
            return Ok(());
        }
        let why = format!("only {reached} of {wanted} replicas have it");
        Err(redis::RedisError::from(std::io::Error::other(why)))
    }

    /// True when replicas must have it.
    fn waits(&self, ask: &RedisCall) -> bool {
        ask.must_spread && self.address.wait > 0
    }

    fn slot(&self, ask: &RedisCall) -> &Slot {
        if self.waits(ask) { &self.waiting } else { &self.open }
    }

    async fn line(&self, ask: &RedisCall) -> RedisResult<Line> {
        let mut open = self.slot(ask).lock().await;
        if let Some(line) = &*open {
            return Ok(line.clone());
        }
        let line = self.connect().await?;
        *open = Some(line.clone());
        Ok(line)
    }

    async fn hang_up(&self, ask: &RedisCall) {
        *self.slot(ask).lock().await = None;
    }

    async fn connect(&self) -> RedisResult<Line> {
        let config = config(self.patience);
        match &self.door {
            Door::One(client) => {
                client.get_multiplexed_async_connection_with_config(&config).await.map(Line::One)
            }
            Door::Cluster(client) => client.get_async_connection().await.map(Line::Cluster),
            Door::Sentinel(client) => {
                client.lock().await.get_async_connection_with_config(&config).await.map(Line::One)
            }
        }
    }

    /// A connection of its own, to listen on.
    pub(super) async fn ear(
        &self,
        news: tokio::sync::mpsc::UnboundedSender<redis::PushInfo>,
    ) -> RedisResult<MultiplexedConnection> {
        let config = config(self.patience).set_push_sender(news);
        let client = match &self.door {
            Door::One(client) => (**client).clone(),
            Door::Cluster(_) => return self.any_node(&config).await,
            Door::Sentinel(client) => client.lock().await.async_get_client().await?,
        };
        let info = client.get_connection_info().clone();
        self.listening(info)?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// News travel to every node of a cluster; any that answers will do.
    async fn any_node(&self, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let mut last = Err(redis::RedisError::from(std::io::Error::other("no node was named")));
        for addr in self.address.addresses() {
            let client = self.listening(self.address.info(addr)?)?;
            last = client.get_multiplexed_async_connection_with_config(config).await;
            if last.is_ok() {
                break;
            }
        }
        last
    }

    /// A client whose connections are told things unasked.
    fn listening(&self, info: redis::ConnectionInfo) -> RedisResult<Client> {
        let settings = self.address.introduction().set_protocol(redis::ProtocolVersion::RESP3);
        client(&self.address, info.set_redis_settings(settings))
    }
}

/// Only the store's own patience counts: the driver's would cut long answers off.
fn config(patience: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(Some(patience))
}

fn client(address: &RedisAddress, info: redis::ConnectionInfo) -> RedisResult<Client> {
    match address.certificates() {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    }
}

fn door(address: &RedisAddress, patience: Duration) -> RedisResult<Door> {
    let hosts = address.addresses();
    match &address.sort {
        RedisTopology::One => {
            let first = hosts.into_iter().next().map(|host| address.info(host)).transpose()?;
            let first = first.ok_or_else(|| redis::RedisError::from(std::io::Error::other("no host")))?;
            client(address, first).map(|client| Door::One(Box::new(client)))
        }
        RedisTopology::Cluster => {
            cluster(address, hosts, patience).map(|client| Door::Cluster(Box::new(client)))
        }
        RedisTopology::Sentinel(service) => {
            sentinel(address, hosts, service).map(|client| Door::Sentinel(Box::new(Mutex::new(client))))
        }
    }
}

fn cluster(
    address: &RedisAddress,
    hosts: Vec<redis::ConnectionAddr>,
    patience: Duration,
) -> RedisResult<ClusterClient> {
    let hosts = hosts.into_iter().map(|host| address.info(host)).collect::<RedisResult<Vec<_>>>()?;
    let mut builder =
        ClusterClientBuilder::new(hosts).connection_timeout(patience).response_timeout(patience).retries(3);
    builder = builder.tcp_settings(lively());
    if address.is_tls {
        builder = builder.tls(TlsMode::Secure);
    }
    if let Some(certificates) = address.certificates() {
        builder = builder.certs(certificates);
    }
    builder.build()
}

fn sentinel(
    address: &RedisAddress,
    hosts: Vec<redis::ConnectionAddr>,
    service: &str,
) -> RedisResult<SentinelClient> {
    let mut builder = SentinelClientBuilder::new(hosts, service, SentinelServerType::Master)?
        .set_client_to_redis_db(address.db)
        .set_client_to_redis_tcp_settings(lively())
        .set_client_to_sentinel_tcp_settings(lively());
    if let Some(user) = &address.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &address.password {
        builder = builder.set_client_to_redis_password(password);
    }
    if address.is_tls {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some(certificates) = address.certificates() {
        builder = builder.set_client_to_redis_certificates(certificates);
    }
    builder.build()
}
